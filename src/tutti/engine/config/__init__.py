"""Profiles from KubeSchedulerConfiguration files, read as strictly as kube-scheduler reads them.

`profile_loader` reads a file; `configuration_types` are its fields, `strict_parsing` reads them, `extension_points`
decides which plugins are on, `plugin_args` checks arguments and makes the plugins.
"""
