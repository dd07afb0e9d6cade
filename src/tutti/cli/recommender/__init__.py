"""`tutti recommender`; `command` is the click command."""
