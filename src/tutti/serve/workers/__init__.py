"""Worker processes that plan, each one request at a time.

In the server:
- `worker_pool`     Which worker gets a request, and when is a worker replaced?
- `worker_process`  How does the server start, ask and kill one worker?

In a worker:
- `worker_main`     What does the worker do from its start to its end?
- `planning`        How do the bytes of a request become the bytes of its answer?

In both: `messages` are what the two sides send each other.
"""
