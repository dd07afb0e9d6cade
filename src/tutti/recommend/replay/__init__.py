"""What a binder makes of a purchase.

`binding` is what both binders share; `tutti_binder` puts pods where the draft says, `kube_scheduler_binder` lets
kube-scheduler place them; `place_draft` puts a draft into the cluster; `gang_check` finds gangs that would not start;
`replay_purchase` replays a purchase that somebody else made.
"""
