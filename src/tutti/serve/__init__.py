"""The recommender over HTTP: a thin server that never plans, and worker processes that do nothing else.

`server` runs it, `settings` configures it, `embedded` runs it inside another program, `metrics` counts; `http`,
`workers` and `openapi` are its parts.
"""
