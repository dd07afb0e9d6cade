"""The recommender: what to buy for the pods that wait, at the least price, with proof; and what to give back.

- `records`  what goes in and comes out: request, recommendation, drafts, scale-down plan
- `request_cluster`  the planning cluster of a request
- `problem`  pending pods and offerings in numbers
- `replay`   what a binder makes of a draft: kube-scheduler or Tutti
- `search`   strategies that draft purchases, and the selection of the best
- `flow`     the whole way from a request to a recommendation; `compose`, `reasons`, `unpriced_notes` its answer
- `after_purchase`  the cluster after a recommendation was followed; `compare` what other autoscalers would buy
- `down`     what can be given back
"""
