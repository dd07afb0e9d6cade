"""Carrying out a plan: bindings, evictions and what pods are told, as requests to the API server.

- `plan_executor`   which requests does a plan need, in which order?
- `binder`          how is a pod bound, and what does a failed binding mean?
- `gang_binding`    may the bindings of a gang begin?
- `volume_binder`   how are volumes and claims bound before their pods?
- `pinned_claims`   which claims keep a pod that waits on a node?
- `rejected_pods`   which pods did a kubelet reject after they were bound?
- `evictions`       how do victims leave, and what if they do not?
- `status_writer`   what do the conditions and nominations of pods say?
- `groups`          what does the status of PodGroups say?
- `waiting_reasons` why does a pod wait, in the words of its condition?
- `request_window`  how many requests may be under way?
- `shadow_executor` what does a dry run do instead?
- `pod_reader`      what does the server say of a pod, when an answer was lost?
"""
