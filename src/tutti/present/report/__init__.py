"""The report: one page about a recommendation that opens from a file, without a network and without a server.

Contract: pure functions from records to HTML text, except for `write`. Every text that comes from the input goes
through `markup`, which escapes it: names of pods are written by strangers. The page's policy forbids all requests and
all scripts and styles but its own two.
"""
