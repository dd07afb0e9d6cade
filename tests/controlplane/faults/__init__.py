"""Faults between a scheduler and the API server, and the invariants that must survive them; `make soak` runs them.

- `checks`           which invariants did a run break?
- `soak`             how does one run go, from the first process to the table?
- `soak_options`     which scheduler runs, how long, and with which faults?
- `soak_report`      what was injected, and what did it break?
- `fault_plan`       which fault meets a request?
- `fault_proxy`      how do requests pass, fail, and get lost?
- `proxy_process`    how is the proxy started and steered?
- `disturbances`     when is which replica killed, frozen or cut off?
- `replicas`         how is a replica of the scheduler started and killed?
- `workload`         which gangs come and go?
- `gang_objects`     what do nodes and gangs look like as JSON?
- `watch_recorder`   what happened to pods, nodes and leases?
- `audited_writes`   which writes of the scheduler did the API server accept?
- `direct_client`    how does the harness itself reach the API server?
"""
