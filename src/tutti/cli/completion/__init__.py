"""`tutti completion`: `command` prints the completion script for a shell."""
