"""Scale-down: what a cluster can give back, and in which order, without a pod lost.

- `scale_down`   the whole way; `candidates` nodes that may go; `remove_nodes` one after the other
- `consolidate`  dearer nodes for cheaper ones; `bill` what that saves
- `drain`, `node_pods`, `one_pass`  nodes emptied on the picture
- `pool_sizes`, `disruption_pace`, `disruption_budget_status`  minimums and budgets that are kept
- `compare_cluster_autoscaler`  what Cluster Autoscaler would remove
"""
