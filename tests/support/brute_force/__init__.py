"""Complete searches over small instances, which say what is right without the engine.

`gang_search` and `purchase_search` try everything; `gang_instances` and `purchase_instances` draw instances from a
seed and turn them into what Tutti reads; `gang_verdicts` compares Tutti's plans with the search.
"""
