"""Scenario files of the scaling recommender that Tutti replaces.

- `reader`            which request does a scenario file describe?
- `small_case`        how is a handwritten case with ``nodePools`` read?
- `recorded_cluster`  how is the recording of a real cluster with ``Scenarios`` read?
"""
