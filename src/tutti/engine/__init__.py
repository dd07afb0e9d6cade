"""Placement of pods: one engine for every question, from one plugin's filter up to a whole session.

Lower packages know nothing of higher ones:

- `plugins`     one file per kube-scheduler plugin: filter, score and reasons
- `placement`   the engine: which nodes fit a pod, which is best, batches, profiles
- `config`      profiles from KubeSchedulerConfiguration files
- `gangs`       the state of gangs, and placing one whole or not at all
- `preemption`  victims for single pods (DefaultPreemption) and for gangs
- `reasons`     why a pod or a gang cannot be placed
- `session`     the driver: queue order, attempts, evictions, reservations, the plan
- `explain`     explanations of pods and gangs, and the cures that would help
"""
