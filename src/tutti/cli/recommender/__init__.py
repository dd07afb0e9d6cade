"""`tutti recommender`: `command` runs the HTTP service of `tutti.serve`."""
