"""The use cases, without terminal, socket or clock; commands, the server and the Python API (`tutti.api`) call them.

- `load`               objects from files or dicts; `loaded_cluster` the cluster they make, which can be asked
- `client_objects`     objects of the official Kubernetes client as dicts; `scheduler_profile` a scheduler's profile
- `schedule`           places pending pods; `label_query` reads label selectors as -l has them
- `explain`            explains a pod or a gang; `explain_target` finds the one that a user means
- `what_if`            cordon, drain, add and scale as edits; `scale_workload` finds and scales a workload
- `recommend`          what to buy, which nodes can go, and what other autoscalers would do
- `simulate_scaling`   rounds of buying for a Gardener snapshot; `simulation_snapshot` the document that is posted
- `missing_kinds`      notes on kinds that the input lacks; `result` the base of all answers
"""
