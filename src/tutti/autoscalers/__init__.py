"""Models of real autoscalers: their algorithms, with the files named as the originals name them.

`karpenter`, `cluster_autoscaler` and `original` (the scaling recommender that Tutti replaces); `shared` is what they
have in common.
"""
