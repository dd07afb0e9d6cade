"""Gangs: their state in the cluster, and placing a gang whole or not at all.

- `cluster_gangs`  which gangs has a cluster, and which of them have changed?
- `object_readers`  which gangs does a change of a group object concern?
- `gang_state`   which pods of a gang run, which wait, and how many does it still need?
- `placer`       can all pods that a gang needs be bound, and where?
- `chosen_nodes`  how are pods bound on nodes that preemption chose, or where room is held for them?
- `areas`        to which topology domains may a gang go, the best first?
- `area_search`  how are the pods of several groups placed in their areas: one by one, in other orders, by search?
- `domain_room`  how many pods of a gang fit in each domain, by arithmetic?
- `pod_packing`  how do pods of several kinds fit on nodes, by arithmetic alone?
"""
