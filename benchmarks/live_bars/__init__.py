"""Parts of `live.py`: a cluster to measure on, the schedulers, and what each bar measures.

- `bench_cluster`  which nodes and pods are there, and when was each pod bound?
- `schedulers`     how are Tutti and kube-scheduler started, and what did they use?
- `bare_loop`      how fast are bindings and events without a scheduler?
- `throughput`     how long do waiting pods and gangs take?
- `latency`        how long does a pod that arrives take?
- `startup`        how long does a large cluster take, until the first session?
- `churn`          is every pod bound once while pods come and go, and does the memory stay flat?
- `binding_client` how much CPU does a binding take, against the canned answers of `canned_server`?
"""
