"""Kubernetes as data. Pure, and the bottom of all layers.

- `objects`    records of every kind that is read
- `reading`    files and bytes into objects: sources, decoding, validation
- `admission`  what an API server does to new objects: defaults, limit ranges, priorities
- `workloads`  which pods a workload makes: Deployments, StatefulSets, DaemonSets, Jobs
- `gangs`      gangs in every dialect that names them
- `quantity`, `durations`, `times`, `cron`, `selectors`, `taints`  values that Kubernetes writes as text
- `resources`, `container_totals`, `resource_names`  what pods request and nodes offer
- `generated_names`  names and uids like those that Kubernetes generates
"""
