"""The HTTP side of the server: application, routes, limits and refusals.

- `application`     Which routes and error handlers does the ASGI application have?
- `routes`          Which handler answers which path?
- `middleware`      Where are request ids, tokens, metrics and the log?
- `plan_requests`   How does a plan request go from its body to its answer, and when is it cancelled?
- `query`           Which parameters does the query of a plan request have?
- `request_body`    How is a body received? `upload_limits`: how many bodies at once, and how many bytes?
- `header_timeout`  How long may a client take for its headers?
- `refusals`        Which status and body does an answer without a plan have?
"""
