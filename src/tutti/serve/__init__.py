"""The recommender over HTTP: a server process that receives requests, and worker processes that plan.

- `server`             How does the server start, listen and shut down?
- `settings`           Which settings does the server have?
- `background_server`  How does another program run the server in a thread?
- `metrics`            Which counters does /metrics have?
- `http`               How does a request go from its first byte to its answer?
- `workers`            How do worker processes plan, and when does the server replace one?
- `openapi`            What is in the OpenAPI document?
"""
