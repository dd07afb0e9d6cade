"""HTTP: the application, its routes, limits and refusals.

- `application`, `routes`, `middleware`  the application, its handlers, what every request passes first
- `plan_requests`  a plan request from its body to its answer; `query` its options
- `request_body`, `upload_limits`, `header_timeout`, `tls`  bodies, limits, slow clients, certificates
- `refusals`       every answer without a plan
"""
