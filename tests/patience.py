"""A clock for searches in tests: what comes out must not depend on what else the machine does."""

from __future__ import annotations

import time

PACE = 4


def unhurried() -> float:
    """CPU seconds of this process, at a quarter of their pace; a search that ends by itself does not notice.

    On the wall a loaded machine gives a search a fraction of its time, and the answer of one that was cut short is
    another one. The slower pace is for processors that are slower than ours.
    """
    return time.process_time() / PACE
