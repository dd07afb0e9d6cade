"""kube-scheduler's plugins: each module holds one plugin's filter, score and reasons.

- `node_name`, `node_unschedulable`, `node_affinity`, `taint_toleration`, `node_declared_features`: does the node accept
  the pod by its name, cordon, labels, taints and features?
- `node_resources_fit`, `node_resources_balanced_allocation`: does the node have enough resources, and how full and how
  balanced is it with the pod?
- `node_ports`: are the pod's host ports free? `image_locality`: does the node have the pod's images?
- `inter_pod_affinity`, `pod_topology_spread`: do other pods in the domain allow or prefer the pod?
- `volume_binding`, `volume_restrictions`, `volume_zone`, `node_volume_limits`: can the node use the pod's volumes?
- `base`: which methods does a plugin have? `verdict`: how are filter results encoded and explained?
- `spread_counts`: how many matching pods has each domain of a spread constraint, and what does that score?
- `volumes`: which claim, volume, class and CSI driver belong to a pod's volume?
- `volume_matching`: which volumes meet a pod's claims on a node?
- `persistent_volumes`: which claims does a volume fit, and which nodes reach it?
- `device_classes`: which resources stand for devices that would have to be allocated?
- `attached_cache`: how does a module keep derived values with a cluster?
"""
