"""The purchase problem as arrays of numbers, read once from the planning cluster and the catalogue.

- `problem`         Which pod classes are pending, which offerings and nodes can take them, within which limits?
- `pod_rules`       Which rules between pods (spread, affinity, anti-affinity, host ports) restrict a node or a domain?
- `eligible_pools`  Which pools can be bought from, and why not from the others?
- `scores`          Which offering is the best next node for a greedy strategy?
- `search_context`  What does every search need: the problem, prices by the objective, and the work budget?
"""
