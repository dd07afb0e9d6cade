"""Gardener's ClusterSnapshot as a request, and the RecommendationResponse of its scaling recommender."""
