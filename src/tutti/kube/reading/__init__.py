"""Files and bytes into Kubernetes objects.

`sources` reads files, `parsed_file` splits their text into documents, `decode` and `convert` make typed objects of
them, `loader` a `snapshot`; `yaml_text` reads YAML, `validation` and `pod_validation` check values.
"""
