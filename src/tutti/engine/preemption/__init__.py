"""Preemption: which pods to evict so that a pod or a gang fits.

- `default_preemption`   kube-scheduler's DefaultPreemption for single pods
- `gang_preemption`      victims for a whole gang, and whole gangs as victims
- `victims`              what is evicted together, and which set of victims is the lesser loss
- `victim_proposals`, `greedy_victims`, `victim_subsets`  sets of victims worth trying
- `disruption_budgets`   how many evictions each PodDisruptionBudget still allows
"""
