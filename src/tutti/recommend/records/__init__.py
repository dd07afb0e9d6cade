"""Records of the recommender: `request` goes in, `recommendation` comes out.

`draft` is a purchase before it is bound, `new_nodes` and `scale_ups` are bought nodes one by one and merged,
`down_plan` is a scale-down, `simulation` a scaling simulation.
"""
