"""A real control plane on loopback, and the tests that need one; `make test-live` runs them.

- `build`            compiles the programs into the user's cache, once
- `control_plane`    starts and stops etcd, kube-apiserver and the optional parts; also a command
- `component_flags`  the options of a control plane, and the flags of each program
- `server_files`     the files that kube-apiserver and its clients read: key, token, kubeconfig, audit policy
- `child_processes`  starts processes that never outlive this one
- `launch_child`     runs a program that is killed when its parent dies
- `manifests`        objects as users write them: nodes, pods, CRDs, budgets
- `cluster_setup`    puts nodes, pods, CRDs and service accounts into a cluster
- `audit_log`        reads what kube-apiserver logged about its requests
- `followed_kind`    a reflector on a real server, and what it reported
- `faults`           soak runs: a faulty network, kill -9, changes of leader, and the invariants that must hold
- `scheduler`        tests of `tutti scheduler` as a user starts it, with the rights of its example
- `tcp_relay`        a network between client and server that can be cut
"""
