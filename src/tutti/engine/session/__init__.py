"""The driver: one pass over what waits, from the queue to a plan.

- `session`       the session itself
- `turns`         the order of the queue: which pod or gang is tried first
- `queue`         what waits, backoff, and when it is tried again
- `attempts`, `single_pods`, `context`  one attempt for a gang or for single pods, and what attempts share
- `eviction`      carries out what preemption has found
- `reservations`  where and when a starving gang can start
- `plan_builder`, `plan`  decisions noted, and the plan they become
"""
