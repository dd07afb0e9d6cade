"""The OpenAPI document: schemas of requests and answers, examples."""
