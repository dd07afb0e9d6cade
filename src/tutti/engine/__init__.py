"""Placement: plugins, decisions, preemption, explanations."""

from tutti.engine.engine import Decision, Engine
from tutti.engine.explain import Explanation, explain
from tutti.engine.preempt import Candidate, Preemption, preempt
from tutti.engine.profile import Profile

__all__ = ["Candidate", "Decision", "Engine", "Explanation", "Preemption", "Profile", "explain", "preempt"]
