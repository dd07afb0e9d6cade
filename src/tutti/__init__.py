"""Tutti: one scheduling brain for Kubernetes batch and ML clusters."""

__version__ = "0.1.0"
