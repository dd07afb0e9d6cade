"""`tutti recommend`; `command` is the click command."""
