"""Preemption: which pods to evict so that a pod or a gang fits.

- `default_preemption`  which victims would kube-scheduler's DefaultPreemption choose for a single pod?
- `gang_preemption`     which victims let a whole gang fit, and where does the gang go then?
- `room_dry_runs`       which victims does it choose where only free resources decide, on all nodes at once?
- `eviction_units`      which pods are evicted together, and which of two victim sets is the smaller loss?
- `victim_proposals`    which sets of units could make enough room, by arithmetic?
- `greedy_victims`      which units does a greedy choice take, where there are too many to try all sets?
- `victim_subsets`      in which order are all sets of a few units tried?
- `victim_rules`        which pods may be victims at all?
- `stuck_pods`          which pods should have left by now, so that waiting for them is in vain?
- `disruption_budgets`  which pods do PodDisruptionBudgets select, and how many evictions do they still allow?
"""
