"""The state of one cluster: tables of nodes and pods, and the edits that change them.

- `cluster`: the cluster; which methods change it and roll it back?
- `edits`: which changes of a cluster exist? `trial`: how are edits tried and undone?
- `node_table`, `pod_table`, `columns`: how are nodes, pods and resources stored as numpy columns?
- `occupancy`: which host ports and volumes are in use on which node?
- `spec_classes`: which pods can the scheduler not tell apart?
- `counters`: how many pods match a selector, per node and topology domain?
- `groups`: which pods name which pod group? `services`: which Services select a pod?
- `holds`: for which pods is room kept on which node?
- `events`: what happened that may let a waiting pod fit?
- `node_edits`: which edits add a node like an existing one, cordon or uncordon a node?
- `follower`: which state outside the cluster is rolled back with the cluster?
- `work`: how much work was done, and how much may a search do?
"""
