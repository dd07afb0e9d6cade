"""HTTP/1.1 for writes, which are many and small; lists and watches go through aiohttp (docs/decisions/0032).

- `write_connections`  how is a request sent on a kept connection?
- `answer_parser`      which answer do the bytes of a connection have?
"""
