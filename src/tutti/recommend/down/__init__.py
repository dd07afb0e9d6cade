"""Scale-down: what a cluster can give back, and in which order, without a pod lost.

- `scale_down`   the whole way; `candidates` nodes that may go; `remove_nodes` one after the other
- `consolidate`  dearer nodes for cheaper ones; `bill` what that saves
- `cluster_without`  a copy of the cluster without some nodes
- `drain`, `node_pods`, `one_pass`  nodes emptied on the planning cluster
- `pool_sizes`, `disruption_pace`  minimums and node budgets of pools
- `compare_cluster_autoscaler`  what Cluster Autoscaler would remove
"""
