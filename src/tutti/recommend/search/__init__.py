"""Strategies that draft purchases, and the selection of the best draft.

- `drafts`             drafts of every strategy; `selection` picks the best after replaying them
- `greedy`             node by node, by a score
- `optimal_drafts`     column generation for every zone layout: `zone_layouts`, `packing_problem`
- `column_generation`  the solver behind it
- `exchange`           local search for cheaper purchases where kube-scheduler binds
"""
