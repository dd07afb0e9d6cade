"""Gardener's scaling recommender: its ClusterSnapshot in, its RecommendationResponse out.

- `request`          which request does a ClusterSnapshot describe?
- `schema`           which fields does a ClusterSnapshot have, and how are they decoded?
- `cluster`          which nodes, pods and priority classes does a snapshot have?
- `worker_pools`     which pools and offerings does a snapshot have?
- `template_nodes`   what does a new node of a worker pool look like?
- `response`         the response for a recommendation
- `client_response`  the response as a client reads it
"""
