"""Local search for cheaper purchases, when kube-scheduler binds the pods.

- `exchange`        From which purchases does the local search start?
- `local_search`    How does the search go from a purchase to cheaper ones, confirmed by replays?
- `neighbours`      Which is the cheapest neighbour of a purchase, by forecasts?
- `fill_limits`     Which purchases place more pods when limits leave no room for all pods?
- `forecast`        Which pods would kube-scheduler place on a purchase, estimated without a replay?
- `forecast_nodes`  Which node columns does a forecast need, for many purchases at once?
"""
