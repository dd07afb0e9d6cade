"""Cluster Autoscaler: scale-up and scale-down, each a step on a borrowed cluster.

Files are named as in Cluster Autoscaler's tree:

- `orchestrator`            core/scaleup/orchestrator: one node group a loop, until no pod can be helped
- `filter_out_schedulable`  core/podlistprocessor: pods that fit on existing nodes
- `binpacking_estimator`    estimator: how many nodes of a group some pods need
- `expander`                expander: which group is chosen
- `balancing_processor`     processors/nodegroupset: one scale-up split between similar groups
- `planner`, `eligibility`, `unneeded`  core/scaledown: which nodes are removed; `scaledown_records` its records
- `removal_simulator`       simulator/cluster.go: where the pods of a removed node go
- `drainability`            simulator/drainability: which pods move, stay, or block
- `utilization`             simulator/utilization: how much of a node is requested
"""
