"""gardener/scaling-advisor: planner requests and ScalingConstraints in, planner responses and ScalingAdvice out.

- `request`          which request does a planner request or a ScalingConstraint describe?
- `schema`           which fields do planner requests and constraints have, and how are they decoded?
- `cluster`          which Kubernetes objects does a planner snapshot have?
- `planner_options`  which options of a planner request does Tutti follow?
- `volume_limits`    how many volumes do new nodes take?
- `response`         the planner response and the ScalingAdvice for a recommendation
"""
