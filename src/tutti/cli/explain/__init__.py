"""`tutti explain`; `command` is the click command."""
