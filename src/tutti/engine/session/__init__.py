"""The driver of the scheduler: from pending pods to a plan.

- `session`              which turns does one session take, and what does it return?
- `schedule`             how are all pending pods scheduled at once, without a clock?
- `policy`               what may a session evict, how often does it try, how long does it wait?
- `passes`, `queue_passes`  which turns are taken next: all pending ones, or those that the queue says are due?
- `queue_order`          which pod or gang is tried first, and which pods are not tried at all?
- `queue`                which turns failed, and when is each tried again?
- `queue_state`          what does the queue remember, and how is that stored or undone?
- `gang_attempts`, `single_pod_attempts`  how is one gang, or are some single pods, placed?
- `context`              what do all attempts of a session share: tools, budget, known failures?
- `partial_gangs`        which gangs run in part and never ran whole, and when are they undone?
- `eviction`             how are the evictions that preemption chose carried out?
- `waiting`              which turns are pending, and which change may cure a failed one?
- `reserve`              where and when can a starving turn start, and who may use that room?
- `plan`, `plan_builder` what does a plan contain, and how is it recorded?
"""
