"""Connections to the API server: aiohttp for lists and watches, own ones for writes (docs/decisions/0032).

- `connections`        which connections does a client certificate have?
- `write_connections`  how is a small request sent on a kept connection?
- `answer_parser`      which answer do the bytes of a connection have?
- `sockets`            how does a connection notice a dead network?
"""
