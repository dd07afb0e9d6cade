"""Memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATM = Path("/proc/self/statm")


def resident_memory() -> int:
    """Return the resident memory in bytes, or the maximum so far on systems without /proc."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
