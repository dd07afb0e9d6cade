"""Column generation: pack items (pods) into nodes of several kinds at the least price, with a proven lower bound.

- `packing_input`        What is the input: classes of items, kinds of nodes, limits, existing nodes?
- `packing`              What is the result: bought nodes with a pattern each, items on existing nodes, dropped items?
- `solve`                How do seeds, column generation, rounding and the bound follow each other?
- `master`               How often is each known pattern bought (master problem, linear or integer)?
- `generate`             Which patterns enter the master problem (pricing), and which bound do the dual values prove?
- `pattern_heuristics`   Which valuable patterns does a quick knapsack heuristic find?
- `pattern_enumeration`  Which patterns can a cheaper plan use at all?
- `knapsack_bounds`      How much can a pattern of a kind be worth at most?
- `rounding`             How do fractions of patterns become whole nodes?
- `highs`                How is the solver HiGHS set up, and stopped by counted work?
"""
