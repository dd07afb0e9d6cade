"""Placing pods: which nodes can take a pod, how good each is, and where the pod goes.

- `engine`             decisions for pods and batches of pods
- `evaluator`          filters and scores of all plugins for one kind of pod
- `row_plugin_cache`, `node_plugin_cache`, `row_plugins`  answers of plugins, kept per kind of pod
- `batch`              many identical pods at once
- `capacity`           how many copies of a pod fit, per node and per domain
- `profile`            which plugins are on, in which order and with which weights
"""
