"""Kubernetes objects as data: the lowest layer, pure except for `reading`, which reads files.

- `objects`: which fields does a Kubernetes object have?
- `reading`: how do files and bytes become objects, and which objects are invalid?
- `private_fields`: which fields of an object never leave the cluster?
- `admission`: what does an API server change in a new object (defaults, limit ranges, priorities)?
- `workloads`: which pods does a Deployment, a StatefulSet, a DaemonSet or a Job create?
- `gangs`: which pods form a gang, in every dialect?
- `quantity`, `durations`, `times`, `cron`: how is a quantity, a duration, a timestamp or a cron schedule parsed?
- `selectors`, `taints`: does a selector match these labels, and does a toleration tolerate this taint?
- `resources`, `container_totals`, `resource_names`: what do pods request, what do nodes offer, which resources count?
- `node_features`: which features must a node declare to run a pod?
- `generated_names`: which name, uid or template hash does a generated object get?
"""
