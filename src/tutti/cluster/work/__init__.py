"""Counted work: `meter` counts, with the rate of every kind of work; `work_budget` limits what a search may do."""
