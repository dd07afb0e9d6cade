"""Explanations: why a pod or a gang goes where it goes or waits, and what would cure it.

- `pod_explanation`, `gang_explanation`  the answers of all nodes for a pod; the state and the outcome of a gang
- `cures`         finds changes that would let a gang start; `cure_trials` tries them
- `pod_cures`, `node_cures`, `eviction_cures`  what is proposed; `group_edits` changes a gang's group
"""
