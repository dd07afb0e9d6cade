"""Kubernetes quantities ("1500m", "2Gi", "1e3") as exact integers, and amounts formatted as text.

Contract: `parse_nano` is exact: it computes with integers, never with floats, and rounds fractions of a nano-unit away
from zero. `milli` and `value` round up once more, as Quantity.MilliValue() and Quantity.Value() do. Both return 64-bit
integers; on overflow they return the same number as Kubernetes: zero or the low 64 bits. All three functions cache
their results, because a cluster has few distinct quantities. Text without a digit ("m", ".") raises `QuantityError`;
Kubernetes reads such text as zero, but no API server writes it, so it is a typing error.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tutti.exceptions import QuantityError

_NANO = 9
_MAX_INT64 = 2**63 - 1
_INT64_DIGITS = 18
"""Kubernetes stores numbers of at most this many digits as 64-bit integers, longer numbers as big decimals."""
_HUGE_EXPONENT = 64
"""From this exponent on the low 64 bits are all zero, so larger exponents are cut to this one."""

_MAX_DIGITS = 1000
"""Longer numbers are refused; real quantities are far shorter."""

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)")


@lru_cache(maxsize=1 << 16)
def parse_nano(quantity: str | float) -> int:
    """Return the quantity in nano-units."""
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
    """Return the quantity in thousandths, rounded up: the millicores of "cpu"."""
    return milli_of_nano(parse_nano(quantity))


@lru_cache(maxsize=1 << 16)
def value(quantity: str | float) -> int:
    """Return the quantity in whole units, rounded up: the bytes of "memory"."""
    return value_of_nano(parse_nano(quantity))


def milli_of_nano(nano: int) -> int:
    """Convert nano-units to thousandths, rounded up."""
    return _int64(_ceil(nano, 10**6), nano, 6)


def value_of_nano(nano: int) -> int:
    """Convert nano-units to whole units, rounded up."""
    return _int64(_ceil(nano, 10**9), nano, 9)


def format_cpu(millicores: int) -> str:
    """Format millicores as kubectl prints them: "250m", "4"."""
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def format_bytes(number: int) -> str:
    """Format bytes with the largest exact binary suffix, as kubectl prints them: "512Mi", "1500"."""
    for suffix, bits in reversed(_BINARY.items()):
        if number and number % (1 << bits) == 0:
            return f"{number >> bits}{suffix}"
    return str(number)


def format_quantity(resource: str, amount: int) -> str:
    """Format an amount of `kube.resources` in the unit of the resource."""
    if resource == "cpu":
        return format_cpu(amount)
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return format_bytes(amount)
    return str(amount)


def _decimal_exponent(suffix: str, quantity: str | float) -> int:
    """Return the power of ten of a suffix."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise _not_a_quantity(quantity)
    power = int(exponent[1])
    if not -_MAX_INT64 - 1 <= power <= _MAX_INT64:
        raise _not_a_quantity(quantity)
    return (power + 2**31) % 2**32 - 2**31  # Kubernetes stores the exponent in 32 bits


def _shift(number: int, places: int) -> int:
    """Return number * 10**places, rounded up."""
    if number == 0:
        return 0
    if places >= 0:
        return int(number * 10 ** min(places, _HUGE_EXPONENT + _NANO))
    if -places > number.bit_length():  # the result is below 1: skip the computation of a huge power of ten
        return 1
    return _ceil(number, 10**-places)


def _ceil(number: int, unit: int) -> int:
    """Divide and round away from zero."""
    return -(-number // unit) if number >= 0 else number // unit


def _int64(rounded: int, nano: int, places: int) -> int:
    """Return a rounded amount as a 64-bit integer; an overflow gives the same number as in Kubernetes.

    Kubernetes stores a short number as digits and an exponent that is a multiple of three. If the exponent is 12 or
    more, an overflow gives zero. In every other case an overflow keeps the low 64 bits.
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
