"""Kubernetes quantities ("1500m", "2Gi", "1e3") as exact integers, and back into text for people.

Contract: `parse_nano` is exact: arithmetic on integers, never on floats. What is finer than a nano-unit is rounded up,
away from zero. `milli` and `value` round up once more, as Quantity.MilliValue() and Quantity.Value() do, and are
64-bit integers: beyond that range they give what the scheduler itself works with, zero or the low 64 bits. All three
remember their answers, because a cluster has few distinct quantities. Text without any digit ("m", ".") is refused,
although Kubernetes takes it for zero: no API server writes it, so it is a slip.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tutti.exceptions import QuantityError

_NANO = 9
_MAX_INT64 = 2**63 - 1
_INT64_DIGITS = 18
"""Kubernetes keeps numbers of at most so many digits as 64-bit integers, longer ones as big decimals."""
_HUGE_EXPONENT = 64
"""From here on all low 64 bits are zero, so larger exponents need not be carried out."""

_MAX_DIGITS = 1000
"""Longer numbers are refused; nothing real comes near."""

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")


@lru_cache(maxsize=1 << 16)
def parse_nano(quantity: str | float) -> int:
    """The quantity in nano-units."""
    text = str(quantity).strip()
    shape = _SHAPE.fullmatch(text)
    if shape is None or isinstance(quantity, bool):
        raise _not_a_quantity(quantity)
    sign, whole, fraction, suffix = shape[1], shape[2], shape[3] or "", shape[4]
    if not 0 < len(whole) + len(fraction) <= _MAX_DIGITS:
        raise _not_a_quantity(quantity)
    number = int(whole + fraction)
    if suffix in _BINARY:
        nano = _shift(number << _BINARY[suffix], _NANO - len(fraction))
        nano = min(nano, _MAX_INT64 * 10**_NANO)
    else:
        nano = _shift(number, _NANO + _decimal_exponent(suffix, quantity) - len(fraction))
    return -nano if sign == "-" else nano


@lru_cache(maxsize=1 << 16)
def milli(quantity: str | float) -> int:
    """The quantity in thousandths, rounded up: millicores of "cpu"."""
    return milli_of_nano(parse_nano(quantity))


@lru_cache(maxsize=1 << 16)
def value(quantity: str | float) -> int:
    """The quantity in whole units, rounded up: bytes of "memory"."""
    return value_of_nano(parse_nano(quantity))


def milli_of_nano(nano: int) -> int:
    """A sum of nano-units in thousandths, rounded up."""
    return _int64(_ceil(nano, 10**6), nano, 6)


def value_of_nano(nano: int) -> int:
    """A sum of nano-units in whole units, rounded up."""
    return _int64(_ceil(nano, 10**9), nano, 9)


def format_cpu(millicores: int) -> str:
    """Millicores as kubectl prints them: "250m", "4"."""
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def format_bytes(number: int) -> str:
    """Bytes with the largest binary suffix that loses nothing, as kubectl prints them: "512Mi", "1500"."""
    for suffix, bits in reversed(_BINARY.items()):
        if number and number % (1 << bits) == 0:
            return f"{number >> bits}{suffix}"
    return str(number)


def format_quantity(resource: str, amount: int) -> str:
    """An amount as `kube.resources` counts it, in the unit that belongs to the resource."""
    if resource == "cpu":
        return format_cpu(amount)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return format_bytes(amount)
    return str(amount)


def _decimal_exponent(suffix: str, quantity: str | float) -> int:
    """The power of ten that a suffix stands for."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise _not_a_quantity(quantity)
    power = int(exponent[1])
    if not -_MAX_INT64 - 1 <= power <= _MAX_INT64:
        raise _not_a_quantity(quantity)
    return (power + 2**31) % 2**32 - 2**31  # Kubernetes keeps the exponent in 32 bits


def _shift(number: int, places: int) -> int:
    """A number times a power of ten, rounded up."""
    if number == 0:
        return 0
    if places >= 0:
        return int(number * 10 ** min(places, _HUGE_EXPONENT + _NANO))
    if -places > number.bit_length():  # more than all its digits: avoids a power of ten as long as the exponent
        return 1
    return _ceil(number, 10**-places)


def _ceil(number: int, unit: int) -> int:
    """Division that rounds away from zero."""
    return -(-number // unit) if number >= 0 else number // unit


def _int64(rounded: int, nano: int, places: int) -> int:
    """A rounded amount in 64 bits, with what Kubernetes makes of an overflow.

    It keeps short numbers as digits and an exponent that is a multiple of three; multiplied out by 10^12 or more such a
    number becomes zero on overflow. In every other case the low 64 bits are left.
    """
    if -_MAX_INT64 - 1 <= rounded <= _MAX_INT64:
        return rounded
    text = str(abs(nano))
    zeros = (len(text) - len(text.rstrip("0"))) // 3 * 3
    if len(text) - zeros <= _INT64_DIGITS and zeros - places >= 12:
        return 0
    return (rounded + 2**63) % 2**64 - 2**63


def _not_a_quantity(quantity: str | float) -> QuantityError:
    return QuantityError(f'"{quantity}" is not a quantity (want for example 500m or 2Gi)')
