"""The body and the answer of ``POST /v1/recommendations``."""
