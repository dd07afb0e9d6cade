"""The Kubernetes API: credentials, lists, watches and writes.

- `access`          where is the API server, whom do we trust, and who are we?
- `http`            which connections do requests use, and how do thousands of small writes stay cheap?
- `api_client`      how is one request sent?
- `api_errors`      what does an error answer, or a connection that fails, say?
- `server_clock`    what time is it on the API server?
- `resources`       what is the path of an object?
- `discovery`       which kinds does the server have?
- `needed_kinds`    which kinds does a use case read from a cluster, and why?
- `cluster_reader`  which objects of some kinds are there now?
- `reflector`       which objects of a kind are there, and what changes?
- `port_forward`    how does a local port lead to a port of a pod?
- `watch_events`    which events does the stream of a watch have?
- `pod_writes`      how is a pod bound, evicted, deleted or patched?
- `event_recorder`  what are users told about their objects?
- `access_reviews`  whose is a token, and what may that user do?
- `lease_lock`      which of several processes leads?
- `backoff`         how long does a failed request wait?
"""
