"""Money: amounts in nano-dollars and back."""

import pytest

from tutti.market.money import a_month, dollars, nano_dollars


def test_amounts_are_exact() -> None:
    assert nano_dollars("0.0416") == 41_600_000
    assert dollars(41_600_000) == 0.0416
    assert a_month(41_600_000) == 30.37


@pytest.mark.parametrize("text", ["much", "-1", "nan", "1e10"])
def test_other_amounts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an amount of money"):
        nano_dollars(text)
