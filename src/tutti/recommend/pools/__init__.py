"""Readers of node pools: one module for each way to say what can be bought; `reader` tells them apart."""
