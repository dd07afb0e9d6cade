"""Money in whole numbers: nano-dollars an hour, so that sums and comparisons are exact."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

NANO = 10**9
HOURS_A_MONTH = 730
"""As clouds bill it: 365 days / 12 x 24 hours."""


def nano_dollars(text: str | float) -> int:
    """Return an amount of dollars in nano-dollars, rounded to the nearest; raise ValueError if it is not an amount."""
    try:
        amount = Decimal(str(text))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not an amount of money") from None
    if not amount.is_finite() or amount < 0 or amount > 10**9:
        raise ValueError(f"{text!r} is not an amount of money")
    return int((amount * NANO).to_integral_value())


def dollars(nano: int) -> float:
    """Return nano-dollars as dollars, for machine-readable output."""
    return round(nano / NANO, 9)


def a_month(nano_an_hour: int) -> float:
    """Return an hourly price as dollars and cents a month."""
    return round(nano_an_hour * HOURS_A_MONTH / NANO, 2)
