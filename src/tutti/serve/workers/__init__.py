"""Worker processes: they plan, one request at a time.

- `worker_pool`, `worker_process`  in the server: all workers, and one of them
- `worker_main`, `planning`  in a worker: its main loop, and from the bytes of a request to the bytes of its answer
- `messages`  what the two sides send each other; `memory` measures a process
"""
