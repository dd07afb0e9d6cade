"""`tutti demo`: a tour of the main commands on an example.

- `command`    the click command, and the steps of the tour
- `cluster`    builds the example cluster; `workloads` lists what runs and waits in it
- pools.yaml and conformance-sample.jsonl.gz are files of the example
"""
