"""Explanations: why a pod or a gang is placed where it is, or waits, and what would cure a waiting gang.

- `pod_explanation`   where would a pod go, which pods would it evict, and what does every node answer?
- `node_verdicts`     which plugin refuses which node for a pod, and how do the other nodes score?
- `gang_explanation`  what would become of a gang, and why?
- `gang_status`       how many pods of each gang run and wait, one line per gang?
- `cures`             which changes would let a waiting gang start?
- `cure_trials`       does a gang start after a given change?
- `node_cures`, `pod_cures`, `eviction_cures`  which changes of nodes, of the gang itself, of other pods to propose?
- `group_edits`       which objects change when a gang gets another minimum, topology or priority?
"""
