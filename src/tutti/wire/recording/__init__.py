"""Recordings: what a scheduler saw and decided, as JSON lines; `tutti.app.replay` runs a recording again.

- `struct_codec`      how are edits, plans and queue records written, and read?
- `object_changes`    which fields of an object changed since its last version?
- `recorder`          which lines does a recording have, and how are they written?
- `recording_lines`   which lines are in a file, with gzip or without, complete or not?
- `reader`            which edit, queue or session does a line describe?
- `comparison`        in which pods do two plans differ?
"""
