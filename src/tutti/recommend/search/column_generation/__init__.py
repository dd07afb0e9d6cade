"""Column generation over pod classes and offerings, with a proven bound.

`solve` runs it: `generate` adds patterns to the `master` problem, `pattern_heuristics` and `pattern_enumeration` find
them, `knapsack_bounds` bounds them, `rounding` makes whole nodes, `packing` is the result, `packing_input` the input,
`highs` the solver.
"""
