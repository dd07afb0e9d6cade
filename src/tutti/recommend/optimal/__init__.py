"""The optimal strategy: column generation over pod classes and offerings, with a proven bound.

`flat` is the packing problem alone (no zones, no gangs, no engine), `fill` packs nodes by value, `knapsack` bounds what
a node can be worth, `master` is the linear programme over patterns, `generate` runs the three, `integer` makes whole
nodes of the result (`packing`), `enumerate` lists all patterns that could still help, and `solve` is the way through.
"""
