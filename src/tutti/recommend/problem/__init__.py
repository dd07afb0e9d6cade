"""The problem in numbers: `problem` has pod classes, offerings and limits, `pod_rules` the rules between pods.

`eligible_pools` says which pools can help, `scores` weighs resources, `search_context` is what every search needs.
"""
