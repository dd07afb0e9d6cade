"""Counters: how many bound pods match a selector or carry a term, per node and per topology domain.

- `label_classes`: which label sets and selectors exist, and which label sets match which selectors?
- `pod_terms`: which pods does an affinity term select?
- `domain_counts`: how many pods are on each node and in each topology domain?
- `pod_counters`: how do edits keep all counts current?
"""
