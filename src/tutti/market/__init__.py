"""What can be bought: offerings, prices, node pools, and the daemons of a new node.

- `offerings`       offerings, pools, limits, the catalogue; `money` nano-dollars an hour
- `price_book`, `price_csv`  packaged prices, and a user's own table
- `pools`           one file per dialect of node pools
- `instance_types`, `machine_capacity`  what a machine of a type becomes as a node
- `pool_context`, `pool_members`, `pool_membership`, `pool_limits`  what pools are read against
- `remaining_limits`  what may still be bought after a purchase
- `node_daemons`    DaemonSet pods of a new node; `planning_cluster` the cluster that new nodes join
"""
