"""The rows of `benchmarks/sessions.py`.

- `measure`: a line of the table, and times with a limit
- `objects`: nodes, pods, gangs and clusters
- `queue_rows`: what a session costs beside pods and gangs that wait
- `hold_rows`: preemption and arrivals beside holds
- `churn`, `churn_rows`: the memory and the counted work of a cluster whose objects come and go
- `day`, `day_rows`: a day of a cluster, recorded and replayed
"""
