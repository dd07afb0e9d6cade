"""`tutti scalesim`; `command` is the click command."""
