"""`tutti demo`; `command` is the click command."""
