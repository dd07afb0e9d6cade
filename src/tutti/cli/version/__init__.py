"""`tutti version`; `command` is the click command."""
