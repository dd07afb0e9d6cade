"""From files and bytes to Kubernetes objects, in the order of the steps.

- `sources`: which files does a path name, and what are their bytes?
- `parsed_file`: which JSON or YAML documents are in a file?
- `yaml_text`: how does Tutti parse YAML as kubectl does?
- `decode`: which objects are in a file, and which are skipped?
- `convert`: how does a dict become a typed object, and how does a decoder's error read?
- `validation`, `pod_validation`: which values of an object, or of a pod spec, are invalid?
- `loader`: how do several files become one snapshot, and what if an object occurs twice?
- `snapshot`: which objects does the input have, and which kinds?
"""
