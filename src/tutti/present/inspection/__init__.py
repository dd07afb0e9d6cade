"""What `tutti inspect` prints of a scheduler's state. Pure functions from the record to text.

- `overview`      What is on the first page?
- `state_tables`  How do the queue, gangs, holds, plans and watches look as tables?
- `target_text`   What is said about one pod or one gang?
- `ages`          How is a time written, seen from the time of the state?
"""
