"""Formats of other programs, in and out: every request becomes a `Request`, every recommendation a response.

- `request_formats`     which format is a document, and which request does it describe?
- `wire_document`       the bytes, format and top-level fields of a document, which all readers take
- `tutti_api`           Tutti's own HTTP API
- `gardener`            Gardener's ClusterSnapshot and RecommendationResponse
- `scaling_advisor`     planner requests, responses and objects of gardener/scaling-advisor
- `scenarios`           scenario files of the recommender that Tutti replaces
- `recording`           recordings of Tutti's own sessions: edits and plans as JSON lines
- `cluster_dump`        how does `tutti dump` write the objects of a cluster?
- `scheduler_state`     what a live scheduler has in mind: its answer to GET /debug/state
- `session_policy`      which policy does a name or a file of `tutti replay --policy` stand for?
- `kubernetes_objects`  which cluster do Kubernetes objects describe?
- `catalogue`           which pools belong to a cluster of Kubernetes objects?
- `guess_controllers`   which controller made a pod, if the format does not say?
- `merged_scale_ups`    all scale-ups and removals of a recommendation, for formats with one list of each
- `case_folding`        how are field names read in any case, as Go does?
- `field_names`         does a document have the usual names, so that the fast decoder can read it?
"""
