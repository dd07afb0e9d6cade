"""Greedy purchases: node by node, the best offering first.

- `strategies`       How does a greedy strategy buy nodes until no pod is left?
- `buyer`            What is the state of one greedy run: nodes bought, pods placed, limits left?
- `whole_gangs`      For which gangs does a strategy buy, so that each gang starts whole or not at all?
- `pods_per_node`    How many pods of each class does one new node of each offering take?
- `pod_rule_limits`  How many pods of a class do the rules between pods allow on a new node?
- `rule_domains`     In which domain would a new node be, and which classes does a selector match?
"""
