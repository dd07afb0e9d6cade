"""Cluster Autoscaler: which nodes would it buy (scale-up), and which would it remove (scale-down)?

Files are named as in Cluster Autoscaler's tree. Both entries leave the cluster unchanged.

- `orchestrator`            core/scaleup/orchestrator, the entry: which node group is bought in each loop?
- `filter_out_schedulable`  core/podlistprocessor: which pending pods fit on existing and bought nodes?
- `binpacking_estimator`    estimator: how many nodes of a group do pending pods need?
- `expander`                expander: which group is chosen?
- `balancing_processor`     processors/nodegroupset: how is one scale-up split between similar groups?
- `planner`                 core/scaledown/planner, the entry: which nodes are removed?
- `eligibility`             core/scaledown/eligibility: is a node underused?
- `unneeded`                core/scaledown/unneeded: which unneeded nodes are deleted, and when?
- `scaledown_records`       the options, node groups and decision of a scale-down
- `removal_simulator`       simulator/cluster.go: which nodes take the pods of a removed node?
- `drainability`            simulator/drainability: which pods move, stay, or block a drain?
- `utilization`             simulator/utilization: which share of a node do its pods request?
"""
