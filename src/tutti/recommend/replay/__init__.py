"""Replay: where a binder places the pods of a purchase, on the planning cluster.

- `binding`                what do both binders share, and what is the result of a replay?
- `tutti_binder`           what results if Tutti binds, so that pods go where the draft says?
- `kube_scheduler_binder`  what results if kube-scheduler binds by its own scores?
- `place_draft`            how does a draft enter the cluster, node by node and pod by pod?
- `gang_check`             which gangs would not start?
- `replay_purchase`        how many pods does kube-scheduler place after the purchase of another program?
"""
