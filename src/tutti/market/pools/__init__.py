"""Readers of node pools, one module per dialect.

- `reader`                  which dialect does a file have, and what can be bought?
- `karpenter_nodepool`      which instance types may a Karpenter NodePool buy?
- `karpenter_offerings`     how do requirements and instance types become offerings and limits?
- `karpenter_requirements`  which types, zones and labels meet the requirements of a NodePool?
- `karpenter_disruption`    when may nodes of a NodePool be removed, and how many at a time?
- `auto_scaling_groups`     how does an AWS Auto Scaling group become a pool?
- `tutti_pools`             how does Tutti's own pools file become pools?
- `tutti_pools_schema`      which fields does Tutti's own pools file have?
- `inferred_pools`          which pools do the existing nodes suggest, without a file?
"""
