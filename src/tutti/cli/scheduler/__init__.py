"""`tutti scheduler`: `command` runs the live scheduler of `tutti.live`."""
