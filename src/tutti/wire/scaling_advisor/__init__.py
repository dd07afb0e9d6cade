"""gardener/scaling-advisor: its planner request, snapshot and ScalingConstraint in, its response and advice out."""
