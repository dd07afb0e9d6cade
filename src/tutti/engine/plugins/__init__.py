"""One file per rule of kube-scheduler."""
