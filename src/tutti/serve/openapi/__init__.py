"""The OpenAPI document.

- `document`  puts it together; `request_schemas` describes bodies; `examples` has example bodies
- schemas of answers come from the types in `tutti.wire.*.response`, queries from `tutti.serve.http.query`
"""
