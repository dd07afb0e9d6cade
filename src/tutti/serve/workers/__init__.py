"""Worker processes: they plan, one request at a time.

`worker_pool` keeps them, `worker_process` is one as the server sees it, `worker_main` runs inside it, `messages` is
what both say to each other, `planning` goes from a request's bytes to its answer's, `memory` measures.
"""
