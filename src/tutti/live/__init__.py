"""The live scheduler: one process that schedules the pods of a running cluster.

- `options`           what may a user choose?
- `watches`           how are all kinds followed, also those that come later?
- `inbox`             what has happened that the cluster in memory does not know yet?
- `newest_objects`    what do the newest reports say of a pod, a node or a group?
- `watched_cluster`   how do reports become a plan, on the worker thread?
- `session_recorder`  what is recorded for `tutti replay`?
- `session_loop`      when does a session run?
- `background_tasks`  which tasks work in the background, and what broke one?
- `leadership`        does this process lead, and until when may it write?
- `scheduler`         how do all parts start, work together and end?
- `executor`          how is a plan carried out?
- `introspection`     what does the scheduler have in mind, and is it well?
"""
