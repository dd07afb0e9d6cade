"""Indexes of a cluster: what pods name, use or keep, by name.

- `groups`: which pods name which pod group?
- `services`: which Services select a pod?
- `occupancy`: which host ports and volumes are in use on which node?
- `holds`: for which pods is room kept on which node?
"""
