"""Scale-down: what a cluster can give back, and in which order, without a pod lost.

Contract: pure. A picture goes in, a `DownPlan` comes out: nodes that go and nodes that come instead, the reason for
every node that stays, and the steps of the way there.
"""
