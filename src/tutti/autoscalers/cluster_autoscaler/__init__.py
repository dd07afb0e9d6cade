"""Cluster Autoscaler: scale-up (`orchestrator`) and scale-down (`scaledown_planner`).

Scale-up: `binpacking_estimator`, `expander`, `balancing_processor`, `filter_out_schedulable`. Scale-down:
`removal_simulator`, `drainability`, `utilization`, `scaledown_records`.
"""
