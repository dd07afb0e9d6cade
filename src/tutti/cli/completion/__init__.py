"""`tutti completion`; `command` is the click command."""
