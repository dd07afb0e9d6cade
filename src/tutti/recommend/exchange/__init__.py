"""Exchange: cheaper purchases for a scheduler that places pods by its own scores.

`exchanged` starts walks (`walk`) from purchase to cheaper purchase; each step (`steps`) is chosen by a forecast
(`forecast`, over columns of `nodes`) of whom the scheduler would place, and what a walk comes to is replayed.
"""
