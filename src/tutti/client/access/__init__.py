"""Access to an API server: its address, whom to trust, and how to prove who we are.

- `cluster_access`    where is the API server, whom do we trust, who are we?
- `kubeconfig`        which cluster and user do kubeconfig files name?
- `current_access`    which cluster is meant if the user names none?
- `in_cluster`        how does a pod reach the API server of its cluster?
- `credentials`       which token or certificate proves who we are now?
- `exec_plugin`       how does a program of the user give credentials?
- `exec_credentials`  when does that program run, and what holds while it fails?
- `proxy`             through which proxy is a server reached?
- `tls`               how is a connection verified?
- `missing_rights`    which refusals mean that we have no right to a request?
"""
