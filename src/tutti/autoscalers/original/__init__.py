"""The scaling recommender that Tutti replaces: `recommender`, one node per run."""
