"""Money in whole numbers: nano-dollars an hour, so that sums are exact and cheapest means cheapest."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

NANO = 10**9
HOURS_A_MONTH = 730
"""As clouds bill it: 365 days / 12 x 24 hours."""


def nano_dollars(text: str | float) -> int:
    """An amount of dollars in nano-dollars, rounded to the nearest; a ValueError for what is not one."""
    try:
        amount = Decimal(str(text))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not an amount of money") from None
    if not amount.is_finite() or amount < 0 or amount > 10**9:
        raise ValueError(f"{text!r} is not an amount of money")
    return int((amount * NANO).to_integral_value())


def dollars(nano: int) -> float:
    """Nano-dollars as dollars, for answers that machines read."""
    return round(nano / NANO, 9)


def a_month(nano_an_hour: int) -> float:
    """What an hourly price comes to in a month, in dollars and cents."""
    return round(nano_an_hour * HOURS_A_MONTH / NANO, 2)
