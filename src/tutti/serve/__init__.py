"""The recommender over HTTP: a server process that never plans, and worker processes that do nothing else.

- `server`    runs the server; `settings` configures it; `embedded` runs it inside another program
- `metrics`   counters in Prometheus' format
- `http`      routes, bodies, refusals; `openapi` the OpenAPI document; `workers` the processes that plan
"""
