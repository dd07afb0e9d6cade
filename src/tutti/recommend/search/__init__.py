"""Strategies that draft purchases, and the selection of the best draft.

- `drafts`             Which drafts are made: greedy, by models of autoscalers, by column generation?
- `selection`          Which draft is best after a binder has replayed it, and which bound holds for it?
- `greedy`             How is a purchase made node by node, by a score?
- `optimal_drafts`     How does column generation make drafts, one for every zone layout?
- `lower_bound`        Which cost can no plan undercut, and when does the bound hold for every plan?
- `zone_layouts`       Which pods go to which zone, before nodes are packed?
- `packing_problem`    How do a problem and a zone layout become the input of the solver?
- `column_generation`  How does the solver pack pods into nodes, and prove a bound?
- `exchange`           How does local search find cheaper purchases when kube-scheduler binds the pods?
"""
