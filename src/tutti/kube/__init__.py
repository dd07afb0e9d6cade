"""Kubernetes as data: objects, quantities, selectors, defaults, loaders. Pure, and the bottom of all layers."""
