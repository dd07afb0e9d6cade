"""``POST /v1/recommendations``, the HTTP API of Tutti itself.

- `request`   reads the body
- `response`  types of the answer; `build_response` makes it from a `Recommendation`
"""
