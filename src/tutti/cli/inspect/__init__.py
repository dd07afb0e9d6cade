"""`tutti inspect`: what a running scheduler has in mind.

- `command`        which options and targets are there, and what is printed?
- `leader_pod`     in which pod does the scheduler run that leads?
- `state_request`  how is the scheduler asked, and what does a refusal mean?
"""
