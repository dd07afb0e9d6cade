"""The recommender: which nodes to buy for pending pods, at a proven low price, and which nodes to remove.

- `records`          what do a request, a draft, a recommendation and a scale-down plan contain?
- `build_request`    how does a snapshot with pools and prices become a request?
- `pending_pods`     which pods wait for a node, and which pods does no scheduler try to place?
- `request_cluster`  how does a planner get its own copy of the request's cluster?
- `problem`          which pod class fits which offering, in numbers?
- `replay`           where does a binder (kube-scheduler or Tutti) place the pods of a purchase?
- `search`           which purchases do the strategies draft, and which purchase is best?
- `reasons`          why do pods stay pending, and what would help instead of buying?
- `compose`          how does the best purchase become a recommendation?
- `unpriced_notes`   which offerings were left out because they have no price?
- `pipeline`         how does a request become a recommendation, step by step?
- `after_purchase`   what does the cluster look like after the purchase?
- `down`             which nodes can be removed or replaced by cheaper nodes?
- `compare`          what would other autoscalers buy for the same request?
"""
