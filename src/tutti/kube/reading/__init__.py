"""Files and bytes into Kubernetes objects.

`sources` reads files, `loader` turns them into a `snapshot`, `decode` and `convert` into typed objects, `yaml_text`
reads YAML, `validation` and `pod_validation` check values.
"""
