"""Greedy purchases: node by node, the best one first.

`strategies` runs them, `buying` is what they share, `node_fill` how much one new node takes, `gang_buying` buys for
gangs whole or not at all, `pod_rule_limits` and `rule_domains` are rules between pods on new nodes.
"""
