"""The use case `recommend`: which nodes to buy for the pods that wait, and which to give back.

- `make_recommendation`     what commands, the server and the Python API call
- `recommendation_request`  what is asked, for a cluster that was loaded
- `recommendation_result`   the answer with its tables, and the plan after the purchase
- `compare_with_peers`      what other autoscalers would do
"""
