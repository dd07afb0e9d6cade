"""The scheduler: one engine for every question, from a single plugin's filter to a whole session.

Lower packages do not import higher ones; the list goes from the lowest to the highest:

- `plugins`     how does one kube-scheduler plugin filter and score nodes, and with which reasons?
- `placement`   which nodes fit a pod, which one is best, and how are like pods placed in a batch?
- `config`      which profile does a KubeSchedulerConfiguration describe?
- `gangs`       which pods does a gang need, and how is a gang placed whole or not at all?
- `preemption`  which pods are evicted for a single pod (DefaultPreemption) or for a gang?
- `reasons`     why can a pod or a gang not be placed?
- `session`     in which order are pods and gangs tried, when are they retried, and what is in the plan?
- `explain`     why is a pod or a gang placed or not, and what would cure a waiting gang?
"""
