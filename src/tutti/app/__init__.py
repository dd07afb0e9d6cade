"""The use cases, without terminal, socket or clock; commands, the server and the Python API (`tutti.api`) call them.

- `load`, `client_objects`   which objects do files, dicts or objects of the Kubernetes client describe?
- `loaded_cluster`           which cluster do loaded objects make, and how does it look after a what-if?
- `what_if`, `scale_workload`  which edits do cordon, drain, add and scale stand for?
- `schedule`, `label_query`  where do pending pods go, and which of them match a selector like kubectl's `-l`?
- `explain`, `explain_target`  why does a pod or a gang wait, and which one does a user mean by a name?
- `recommend`                which nodes to buy, which to remove, and what would other autoscalers do?
- `simulate_scaling`, `simulation_snapshot`  what happens over several rounds of buying, and what is posted in each?
- `replay`                   which plans does a recording give when it runs again, and where do they differ?
- `scheduler_profile`        which plugins and weights does the scheduler use?
- `missing_kinds`            which kinds does the input lack that could change the answer?
- `result`                   what do all results have in common?
"""
