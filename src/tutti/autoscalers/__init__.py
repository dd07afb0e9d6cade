"""Models of real autoscalers: their algorithms, with files and types named as in the originals.

A model reads a cluster and a catalogue, and leaves both unchanged.

- `karpenter`           which nodes would Karpenter buy?
- `cluster_autoscaler`  which nodes would Cluster Autoscaler buy, and which would it remove?
- `original`            which nodes would the scaling recommender buy that Tutti replaces?
- `shared`              snapshots, pod groups, limits and purchases that all models use
"""
