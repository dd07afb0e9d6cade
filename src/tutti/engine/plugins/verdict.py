"""Verdicts: the result of all filters for a node, as integers in columns and as reasons for users.

A filter returns a small status code per row: 0 passes, code i refers to `refusals[i - 1]` of the plugin. The verdict of
a row combines the plugin's position in the profile and the status code in one `int16`; `PASS` is the largest value. So
the verdict of the first plugin that refuses the node is the minimum over all plugins.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

StatusCodes = NDArray[np.uint8]
Verdicts = NDArray[np.int16]

CODE_BITS = 4
PASS = 2**15 - 1
EXCLUDED_BY_PRE_FILTER = -1
"""The verdict of nodes that a PreFilterResult excludes; it is below every plugin's verdict."""


class Reason(msgspec.Struct, frozen=True):
    """Why a node, or all nodes, cannot take a pod; `resolvable` means that preemption could help."""

    plugin: str
    messages: tuple[str, ...]
    resolvable: bool


class Refusal(msgspec.Struct, frozen=True):
    """One message with which a plugin refuses a node.

    `resolvable` corresponds to kube-scheduler's status Unschedulable, False to UnschedulableAndUnresolvable.
    """

    message: str
    resolvable: bool


class AttemptError(Exception):
    """A plugin failed: as in kube-scheduler, a status of code Error ends the attempt, and the pod is retried later."""


def encode(place: int, codes: StatusCodes) -> Verdicts:
    """Combine a plugin's position in the profile with its status codes."""
    verdicts = codes.astype(np.int16)
    return np.where(verdicts == 0, np.int16(PASS), verdicts | np.int16(place << CODE_BITS))


def decode(verdict: int) -> tuple[int, int]:
    """Return the plugin's position in the profile and its status code."""
    return verdict >> CODE_BITS, verdict & (2**CODE_BITS - 1)
