"""The recommender over HTTP: a thin server that never plans, and worker processes that do nothing else.

`settings` says how, `server` runs it, `embedded` runs it inside a program. A request passes `front` (id, log, token,
counts), `app` and `routes` (Litestar), `body` (read with a limit) and `pool` (a worker for it); in the worker it is
`planning` that reads the bytes, asks `tutti.recommend` and writes the answer.
"""
