"""What other autoscalers would buy for the same request: their published rules, written again.

Contract: pure functions from a request to a `Purchase`. They are models to compare with and to start a search from;
nothing here decides where a pod goes.
"""
