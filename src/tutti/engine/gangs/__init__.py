"""Gangs: their state in the cluster, and placing one whole or not at all.

- `gang_state`   which pods of a gang run and wait, and what it still needs
- `placer`       places what a gang needs, or nothing
- `areas`        the topology domains where a gang may go, best first
- `area_search`  places pods within one area: one by one, in other orders, by search
- `pod_packing`  search for a placement of pods of several kinds
"""
