"""The picture of a cluster: columns, edits, rollback, holds, pod classes, counters.

- `cluster`       the picture; `edits` the one way to change it; `trial` edits that are undone
- `node_table`, `pod_table`, `columns`, `occupancy`  nodes and pods as columns; ports and volumes in use
- `spec_classes`  pods that the scheduler cannot tell apart; `counters` pods counted by selector and domain
- `groups`, `holds`, `services`, `events`  groups of pods, room that is held, services, what has happened
- `node_edits`    new nodes like an existing one, cordoned and uncordoned nodes
- `follower`      state that follows the marks and rollbacks of a cluster
- `work`          counted work: the meter with its rates, and the work budget of a search
"""
