"""Scale-down: which nodes a cluster can do without, and in which order they are removed without losing a pod.

- `scale_down`                  how does a recommendation become a scale-down plan, step by step?
- `removal_candidates`          which nodes may be removed, and why not the others?
- `remove_nodes`                which candidates can go because their pods fit on existing nodes?
- `consolidate`                 which nodes can be replaced by cheaper ones?
- `bill`                        what does a change save and cost, and does it pay?
- `cluster_without`             how is a cluster copied without some nodes?
- `drain`                       how are nodes drained in the planning cluster, step by step?
- `final_drain`                 which steps drain all chosen nodes so that no pod moves twice?
- `node_pods`                   which pods must move before a node goes, and which pods block it?
- `pool_sizes`                  do pools keep their minimum, and their node budgets?
- `node_budgets`                how many nodes do Karpenter's disruption budgets allow to remove?
- `snapshot_time`               at which moment are ages measured, if the dump is old?
- `compare_cluster_autoscaler`  which nodes would Cluster Autoscaler remove?
"""
