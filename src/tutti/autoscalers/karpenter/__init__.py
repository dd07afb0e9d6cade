"""Karpenter's provisioning: `provisioner` runs passes of `scheduler` until one buys nothing.

Files are named as in Karpenter's pkg/controllers/provisioning/scheduling:

- `scheduler`, `queue`, `preferences`  one pass; the order of pods; which preferences are dropped
- `existingnode`, `nodeclaim`, `nodeclaimtemplate`  where pods go: existing nodes, nodes to buy, offerings of a pool
- `topology`, `topologygroup`, `topologynodefilter`, `topologydomaingroup`  spread, affinity and anti-affinity
- `poddata`  pending pods by class and step of relaxation; `state` the cluster as the provisioner reads it
- `label_rows`, `hostportusage`  labels, taints and host ports
"""
