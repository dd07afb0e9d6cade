"""`tutti version`: `command` prints the versions of Tutti and of the kube-scheduler that it follows."""
