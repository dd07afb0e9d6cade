"""Readers of node pools: one module for each way to say what can be bought; `reader` tells them apart.

- `karpenter_nodepool`   NodePool objects; `karpenter_offerings`, `karpenter_requirements`, `karpenter_disruption`
- `auto_scaling_groups`  AWS Auto Scaling groups of Cluster Autoscaler
- `tutti_pools`          Tutti's own file, with its fields in `tutti_pools_text`
- `inferred_pools`       pools told from the labels of existing nodes
"""
