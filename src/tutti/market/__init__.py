"""The market: which nodes can be bought, at which price, and which daemons a new node runs.

- `offerings`         what are an offering, a pool, a limit and a catalogue?
- `money`             how are prices stored and converted?
- `price_book`        what does an instance type have, and what does it cost where?
- `price_csv`         how is a user's price table read?
- `instance_types`    how does an instance type become a template node?
- `machine_capacity`  how much of a machine do kubelet and the hypervisor keep?
- `pools`             how is each dialect of node pools read?
- `pool_context`      which prices, region and existing nodes are pools read against?
- `pool_labels`       which pool and capacity type do a node's labels tell?
- `pool_members`      which existing nodes does a pool have, and what do they cost?
- `pool_limits`       how much may still be bought, given the existing nodes?
- `remaining_limits`  how much may still be bought after a purchase?
- `node_daemons`      which DaemonSet and static pods does a new node run?
- `planning_cluster`  how do new nodes and their daemons join a cluster?
"""
