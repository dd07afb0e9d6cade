"""The pods that the controllers of Kubernetes would create for workloads now.

- `expansion`: which pods do workloads of all kinds lack; which ReplicaSet does a Deployment create?
- `daemon_sets`: on which nodes does a DaemonSet run a pod, and with which tolerations and affinity?
- `jobs`: how many pods, and which indexes, does a Job or a CronJob start?
- `stateful_sets`: which numbered pods and claims does a StatefulSet lack?
- `owners`: which pods does a controller own, and how is a pod created from a template?
- `scaling`: which pods are added or removed when the replica count of a workload changes?
- `size_limits`: how many pods may one workload have?
"""
