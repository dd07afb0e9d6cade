"""Gangs: pods that start together or not at all, read from every dialect that names them."""
