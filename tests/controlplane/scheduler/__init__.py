"""`tutti scheduler` on a real control plane, as a user starts it, with the rights of `examples/live/rbac.yaml` only.

- `scheduler_process`   starts, asks and ends `tutti scheduler`, and runs other commands of `tutti`
- `scheduler_cluster`   the cluster of one test: its objects, what became of its pods, what the scheduler requested
- `example_objects`     the objects of an example's file, applied as kubectl does
- `gang_objects`        gangs in four dialects
- `kubelet_stages`      what kwok's kubelets do with pods
- `pod_history`         a watch that keeps every version of a namespace's pods
"""
