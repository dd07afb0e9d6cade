"""Names, uids and hashes like those that Kubernetes generates, but the same in every run.

Contract: pure functions of their arguments. Kubernetes draws random letters; this module takes letters from a hash.
"""

from __future__ import annotations

import hashlib

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The alphabet of Kubernetes, without vowels, so that no words appear in names."""
_SUFFIX_LENGTH = 5
_MAX_PREFIX_LENGTH = 63 - _SUFFIX_LENGTH


def generated_name(prefix: str, seed: str) -> str:
    """Return the prefix followed by five letters, as for metadata.generateName."""
    return prefix[:_MAX_PREFIX_LENGTH] + hash_letters(f"{prefix}\n{seed}", count=_SUFFIX_LENGTH)


def hash_letters(seed: str, *, count: int) -> str:
    """Return `count` letters that depend only on the seed."""
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=16).digest())
    letters = []
    for _ in range(count):
        number, index = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[index])
    return "".join(letters)


def template_hash(encoded: bytes) -> str:
    """Return a hash of a pod template, in the form of pod-template-hash but not equal to Kubernetes' own hash."""
    number = int.from_bytes(hashlib.blake2b(encoded, digest_size=4).digest())
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))


def made_uid(seed: str) -> str:
    """Return a uid for an object that no API server has stored."""
    digits = hashlib.blake2b(seed.encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
