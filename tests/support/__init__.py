"""Builders, random clusters, brute-force solvers and fixtures that test modules share."""
