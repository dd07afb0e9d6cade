"""Pods counted by what selects them, per node and per topology domain.

`label_classes` numbers label sets and the selectors that look at them, `pod_terms` are terms between pods,
`domain_counts` counts per domain, `pod_counters` keeps all counts current.
"""
