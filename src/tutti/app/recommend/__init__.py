"""The use case of `tutti recommend`: which nodes to buy for pending pods, and which nodes to remove.

- `make_recommendation`     which nodes to buy and to remove, for a request?
- `recommendation_request`  which request do a loaded cluster, pools, prices and options make?
- `recommendation_result`   how is a recommendation printed, and where are the pods after the purchase?
- `compare_with_peers`      what would other autoscalers do with the same request?
"""
