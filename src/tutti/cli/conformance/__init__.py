"""`tutti conformance`; `command` is the click command."""
