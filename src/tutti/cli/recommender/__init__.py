"""`tutti recommender`; `command` is the click command, the service is `tutti.serve`."""
