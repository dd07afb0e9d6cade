"""What an API server does to objects before a scheduler sees them.

- `prepare`           the whole way from loaded objects to what a scheduler sees
- `pod_admission`     new pods and claims; `defaults` fills in defaults; `limit_ranges` those of the namespace
- `match_label_keys`  merges matchLabelKeys into selectors
- `unknown_volumes`   volumes that the input does not describe
"""
