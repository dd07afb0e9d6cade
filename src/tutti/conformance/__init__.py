"""Recorded answers of real programs, asked again of Tutti."""
