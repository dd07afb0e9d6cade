"""Karpenter's provisioning: which nodes would Karpenter buy for the pending pods?

Files are named as in Karpenter's pkg/controllers/provisioning, pkg/controllers/state and pkg/scheduling.

- `provisioner`          the entry: passes of the scheduler until a pass buys no node
- `scheduler`            one pass: where does each pending pod go?
- `queue`                in which order are pods tried, and when does a pass end?
- `preferences`          which preference of a pod is dropped next when no node takes the pod?
- `existingnode`         which existing nodes have room for a pod?
- `nodeclaim`            which offerings can a node to be bought still be, and which claim is tried next?
- `nodeclaimtemplate`    what does a pool offer, and how much of a node do its daemons leave?
- `topology`             which domains do spread, affinity and anti-affinity leave for a pod?
- `topologygroup`        how many pods of one selector are in each domain?
- `topologynodefilter`   which nodes does a spread constraint count?
- `topologydomaingroup`  which values does a node label have?
- `poddata`              which requirements do pending pods have at each step of relaxation?
- `state`                which nodes, running pods and pending pods does the provisioner see?
- `label_rows`           which nodes or offerings meet a label requirement, or are tolerated?
- `hostportusage`        which host ports conflict?
"""
