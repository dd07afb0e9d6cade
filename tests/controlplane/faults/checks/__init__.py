"""Checks of a soak run, as pure functions of its history; tests/support/faults tests them without a control plane.

- `history`        what happened, record by record?
- `intervals`      which times are in both, or in one and not in the other?
- `availability`   when could the scheduler act?
- `partial_gangs`  when did a gang have some pods, and too few?
- `evictions`      was each pod evicted for somebody?
- `beneficiaries`  for whom was a pod evicted, and did that pod or gang start?
- `invariants`     was a node over its room, a pod bound twice or lost?
"""
