"""One file per kube-scheduler plugin: filter, score and reasons side by side.

`base` says what a plugin is, `verdict` how a filter answers; `volumes` and `spread_counts` are shared by several;
`attached_cache` keeps what plugins and higher packages derive from a cluster.
"""
