"""Profiles from KubeSchedulerConfiguration files, read as strictly as kube-scheduler reads them.

- `profile_loader`       which profile does a file describe?
- `configuration_types`  which fields does a file have?
- `strict_parsing`       does the file have unknown fields, repeated keys or wrong types?
- `extension_points`     which plugins are enabled at which extension point?
- `plugin_args`          are a plugin's arguments valid, and which plugin do they make?
"""
