"""Verdicts: what a filter says of a node, as numbers in columns and as reasons for people.

A filter answers every row with a small number: 0 passes, others index the plugin's `reasons`. The verdict of a row is
the plugin's place in the profile and that number in one `int16` (`PASS` is the largest), so that the verdict of the
first plugin that says no is the minimum over plugins.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

Variants = NDArray[np.uint8]
Verdicts = NDArray[np.int16]

VARIANT_BITS = 3
PASS = 2**15 - 1
NARROWED = -1
"""The verdict of nodes that a pre-filter left out: below every plugin's."""


class Reason(msgspec.Struct, frozen=True):
    """Why a node, or all nodes, cannot take a pod; `resolvable` means that evicting pods could help."""

    plugin: str
    messages: tuple[str, ...]
    resolvable: bool


class Refusal(msgspec.Struct, frozen=True):
    """One of the things that a plugin can say no with."""

    message: str
    resolvable: bool


class AttemptError(Exception):
    """A plugin could not judge: kube-scheduler gives the whole attempt up and tries again later."""


def encode(place: int, variants: Variants) -> Verdicts:
    """Turn a plugin's answers into verdicts."""
    verdicts = variants.astype(np.int16)
    return np.where(verdicts == 0, np.int16(PASS), verdicts | np.int16(place << VARIANT_BITS))


def decode(verdict: int) -> tuple[int, int]:
    """Give the plugin's place and its answer back."""
    return verdict >> VARIANT_BITS, verdict & (2**VARIANT_BITS - 1)
