"""The OpenAPI document, served at /openapi.json.

- `openapi_document`  How is the document put together?
- `request_schemas`   How are request bodies described?
- `examples`          Which example bodies does the document have?

Schemas of answers come from the types in `tutti.wire.*.response`, parameters of queries from `tutti.serve.http.query`.
"""
