"""What waits, and which change may cure it: derived state of the queue, kept by what changes.

- `pending_turns`   which turns do the pending pods form, and which of them are new or changed?
- `waiting_turn`    since when does a failed turn wait, and when is its backoff over?
- `waiting_index`   which failed turns may be cured by what has changed, and when is the next one due?
- `failure_kind`    which turns fail alike, and what may cure them?
- `kind_turns`      which turn of a kind is the next in the queue whose backoff is over?
- `retry_hints`     which waiting pods may fit on the nodes that have changed?
- `room_check`      may a turn that waits for room have it now, so that an attempt is worth its cost?
- `possible_victims`  could any pod be evicted for a pod of some priority?
- `turn_line`       which turn does a pass take next, if more turns become due meanwhile?
- `starving_turns`  which turn has waited for room for so long that room is reserved for it?
- `running_gangs`   which gangs run otherwise than before, so that other pods may be evicted?
- `growing_gangs`   until when may pods of a gang whose size is only counted still come?
- `eviction_races`  did the pods start for which others were evicted, or was the room lost again?
- `spared_victims`  which pods does a preemptor not evict, because the API server refused it?
- `avoided_nodes`   which nodes does a pod avoid, because its binding failed there?
"""
