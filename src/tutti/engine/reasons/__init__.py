"""Why a pod or a gang cannot be placed.

- `pod_failure`    why does a single pod fit on no node, in kube-scheduler's words, and which pods could it evict?
- `gang_shortage`  how many pods of a gang would fit, and what stops the next one?
- `domain_fits`    the same question for each topology domain: how much of a gang would each one take?
- `visible_names`  which names may a message to a pod contain?
"""
