"""Code that the models of autoscalers share.

- `autoscaler_cluster`  how does an autoscaler see a cluster? Pending pods in groups, numbered offerings
- `cluster_snapshot`    which nodes take a pod while nodes are added and pods are placed in a simulation?
- `equivalence_groups`  which pending pods have the same owner and cannot be told apart?
- `temporary_edits`     how does a model change a cluster and leave it unchanged?
- `limit_counter`       how many more nodes of an offering do the limits allow?
- `purchase`            which nodes does a model buy, and for which pods?
- `go_sort`             in which order does Go's sort leave items with equal keys?
- `agreement`           how often does a model give the real program's answer?
"""
