"""Placing pods: which nodes are feasible for a pod, how each scores, and where the pod goes.

- `engine`             on which node does a pod or a batch of pods go?
- `evaluator`          which nodes are feasible for a pod, how does each score, and why are nodes refused?
- `row_plugin_cache`   what do the row plugins say of every node, for many spec classes?
- `node_plugin_cache`  what do the node plugins say of every node, for specs with the same demands on nodes?
- `row_plugins`        which plugins of a profile are row plugins, and do they filter or score?
- `batch`              on which nodes do many identical pods go?
- `capacity`           how many copies of a pod fit, per node and per domain?
- `profile`            which plugins are enabled, in which order and with which weights?
"""
