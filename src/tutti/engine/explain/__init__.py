"""Explanations: why a pod or a gang goes where it goes or waits, and what would cure it.

- `node_verdicts`   what every plugin says of every node for a pod; `pod_explanation` adds where it would go
- `gang_explanation`  the state and the outcome of a gang; `gang_status` one line for every gang
- `cures`         finds changes that would let a gang start; `cure_trials` tries them
- `pod_cures`, `node_cures`, `eviction_cures`  what is proposed; `group_edits` changes a gang's group
"""
