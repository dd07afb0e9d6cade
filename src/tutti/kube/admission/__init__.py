"""The changes that an API server makes to objects before a scheduler sees them.

- `prepare`: how does a loaded snapshot become the objects that a scheduler sees?
- `defaults`: which defaults does an API server set at every read of an object?
- `pod_admission`: what does an API server change, or refuse, in a new pod or claim?
- `limit_ranges`: which requests and limits does a container get from its namespace?
- `match_label_keys`: how are matchLabelKeys and mismatchLabelKeys merged into selectors?
- `unknown_volumes`: how is a pod placed if the input lacks its claims, volumes or storage classes?
"""
