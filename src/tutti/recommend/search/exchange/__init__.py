"""Local search for cheaper purchases where kube-scheduler places the pods.

`exchange` runs it, `local_search` goes from a purchase to cheaper ones among its `neighbours`, `forecast` predicts
what kube-scheduler places, `forecast_nodes` are its columns, `fill_limits` fills pools whose limits bind.
"""
