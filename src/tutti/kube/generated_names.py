"""Names and identities like those that Kubernetes makes up, but the same at every run.

Contract: pure functions of their arguments; where Kubernetes draws letters at random, they are drawn from a hash here.
"""

from __future__ import annotations

import hashlib

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, so that no words come out."""
_SUFFIX = 5
_LONGEST_PREFIX = 63 - _SUFFIX


def suffixed(prefix: str, seed: str) -> str:
    """A generated name: the prefix and five letters."""
    return prefix[:_LONGEST_PREFIX] + letters(f"{prefix}\n{seed}", count=_SUFFIX)


def letters(seed: str, *, count: int) -> str:
    """So many letters out of a seed."""
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=16).digest())
    drawn = []
    for _ in range(count):
        number, place = divmod(number, len(_LETTERS))
        drawn.append(_LETTERS[place])
    return "".join(drawn)


def template_hash(encoded: bytes) -> str:
    """The hash of a pod template: like pod-template-hash, though not the same letters."""
    number = int.from_bytes(hashlib.blake2b(encoded, digest_size=4).digest())
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def made_uid(seed: str) -> str:
    """A uid for an object that no API server has seen."""
    digits = hashlib.blake2b(seed.encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
