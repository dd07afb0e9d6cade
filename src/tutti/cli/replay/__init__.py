"""`tutti replay`: runs a recording of sessions again; the use case is `tutti.app.replay`.

- `command`  Which options are there, how is the file read, and which exit code says that plans differ?
"""
