"""`tutti demo`: a tour of the main commands on an example cluster.

- `command`    Which steps does the tour have?
- `cluster`    How is the example cluster built?
- `workloads`  Which pods run and wait in the example cluster?

The files pools.yaml and conformance-sample.jsonl.gz are the example's node pools and recorded cases.
"""
