"""Tutti's own HTTP API: ``POST /v1/recommendations``.

- `request`         how is the body of a request read?
- `response`        which fields does an answer have?
- `build_response`  how does a `Recommendation` become an answer?
"""
