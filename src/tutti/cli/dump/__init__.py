"""`tutti dump`: `command` writes what the other commands read from a cluster; its format is `wire.cluster_dump`."""
