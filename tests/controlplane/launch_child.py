"""Run a program that the kernel kills when its parent dies: `launch_child.py PARENT PROGRAM [ARGUMENT...]`.

PARENT is the process id of the caller. On Linux a death signal is set before the program replaces this process, so that
even a SIGKILL of the parent leaves no process behind. Other systems have no such signal; there the program just runs.

The signal comes when the thread ends that started this process, so start children in a thread that lives long enough.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent, program = int(sys.argv[1]), sys.argv[2]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died before the signal was set
            sys.exit(1)
    os.execv(program, sys.argv[2:])


if __name__ == "__main__":
    main()
