"""What the models of autoscalers share.

- `autoscaler_cluster`  the cluster as autoscalers look at it: pending pods in groups, offerings by number
- `cluster_snapshot`    nodes on which pods are tried, and to which nodes are added
- `equivalence_groups`  pending pods of one owner that cannot be told apart
- `limit_counter`, `purchase`, `go_sort`, `agreement`  limits, the result, Go's sort, measured agreement
"""
