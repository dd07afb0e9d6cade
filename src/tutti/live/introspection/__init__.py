"""What the scheduler has in mind, for probes, Prometheus and people.

- `introspection`      how do counters, records and the HTTP server belong together?
- `scheduler_metrics`  which numbers does /metrics show?
- `pod_arrivals`       since when does a pod wait to be bound, and how often was it tried?
- `plan_history`       what did the last plans decide?
- `state_query`        which part of the state does a request ask for?
- `cluster_reader`     what do the cluster and the queue contain? (worker thread)
- `queue_reader`       which turns wait, in which order, and when are they tried again? (worker thread)
- `gang_summaries`     how far has each gang come? (worker thread)
- `debug_access`       who may see which part of the state?
- `http_server`        on which address, and with which certificate, are requests served?
- `http_connections`   how are connections accepted and limited?
- `http_routes`        what does each path answer?
"""
