"""The state of one cluster: tables of nodes and pods, and the edits that change them.

- `cluster`: the cluster; which methods change it and roll it back?
- `edits`: which changes of a cluster exist? `trial`: how are edits tried and undone?
- `node_table`, `pod_table`, `columns`: how are nodes, pods and resources stored as numpy columns?
- `spec_classes`: which pods can the scheduler not tell apart?
- `counters`: how many pods match a selector, per node and topology domain?
- `indexes`: which pods name a group, are selected by a Service, use a port or a volume, have room kept?
- `assignments`: which pods are on which node, and what do they sum up to?
- `assumed_volumes`: which volumes and claims are shown as our bindings will change them?
- `collection`: what is given back when no pod, node or object refers to it any more?
- `events`: what happened that may let a waiting pod fit?
- `node_edits`: which edits add a node like an existing one, cordon or uncordon a node?
- `pod_updates`: how do edits change a pod? `object_versions`: which updates are old, or change nothing?
- `undo_log`: what does a rollback undo, and which state outside the cluster follows it?
- `work`: how much work was done, and how much may a search do?
"""
