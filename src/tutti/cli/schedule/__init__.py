"""`tutti schedule`; `command` is the click command."""
