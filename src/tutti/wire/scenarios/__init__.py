"""Scenario files of the scaling recommender that came before, by hand or recorded."""
