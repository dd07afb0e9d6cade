"""Where the project keeps its files."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
VECTORS = ROOT / "tests" / "conformance"
"""Recorded answers of real programs."""
SCENARIOS = ROOT / "tests" / "scenarios"
"""Scenario files of the scaling recommender that came before."""
