"""Workloads into the pods that they would make now.

`expansion` handles all kinds and ReplicaSets; `daemon_sets`, `jobs`, `stateful_sets` one kind each; `owners` says who
owns which pods, `scaling` which pods come and go when a workload is scaled, `size_limits` how large one may be.
"""
