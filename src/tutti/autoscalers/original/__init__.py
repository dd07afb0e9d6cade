"""The scaling recommender that Tutti replaces.

- `recommender`  which nodes would it buy? One node per run, the one with the best value for its price
"""
