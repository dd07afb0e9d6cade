"""Conflicts between the host ports of pods on one node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Port = tuple[str, str, int]
"""Address, protocol and number."""
_ANY_ADDRESS = ("0.0.0.0", "::", "")


def ports_conflict(ports: Iterable[Port], used: Sequence[Port]) -> bool:
    """Return whether two sets of host ports cannot be used on one node."""
    for address, protocol, number in ports:
        for other_address, other_protocol, other_number in used:
            same = address == other_address or address in _ANY_ADDRESS or other_address in _ANY_ADDRESS
            if same and protocol == other_protocol and number == other_number:
                return True
    return False
