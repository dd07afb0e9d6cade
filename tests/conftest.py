"""Settings that every test shares: how hard hypothesis looks for counterexamples.

HYPOTHESIS_PROFILE=deep looks longer. In CI (CI=true) the same examples are drawn every time.
"""

import os

from hypothesis import HealthCheck, settings

SLOW_IS_FINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}

settings.register_profile("dev", max_examples=50, **SLOW_IS_FINE)
settings.register_profile("ci", max_examples=50, derandomize=True, database=None, **SLOW_IS_FINE)
settings.register_profile("deep", max_examples=1000, **SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))
