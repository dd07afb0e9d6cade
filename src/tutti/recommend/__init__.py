"""The recommender: what to buy for the pods that wait, at the least price, with proof.

Contract: pure. A `Request` goes in (a snapshot, node pools with offerings, options), a `Recommendation` comes out. Time
is somebody else's: whoever asks hands in a `Deadline`.
"""
