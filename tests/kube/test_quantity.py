"""Quantities against exact fractions and against the results of Kubernetes."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tutti.exceptions import QuantityError
from tutti.kube.quantity import format_bytes, format_cpu, format_quantity, milli, parse_nano, value

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
    "e+1": Fraction(10),
    "e-12": Fraction(1, 10**12),
}


@given(
    whole=st.integers(0, 9000),  # with suffix T and in thousandths still within 64 bits
    fraction=st.text("0123456789", max_size=12),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    sign=st.sampled_from(["", "+", "-"]),
)
def test_every_quantity_is_its_exact_fraction_rounded_up_once(whole, fraction, suffix, sign):
    text = f"{sign}{whole}{'.' + fraction if fraction else ''}{suffix}"
    exact = (whole + Fraction(int(fraction or 0), 10 ** len(fraction))) * SUFFIXES[suffix]
    direction = -1 if sign == "-" else 1
    nano = ceil(exact * 10**9)
    assert parse_nano(text) == direction * nano
    assert milli(text) == direction * ceil(Fraction(nano, 10**6))
    assert value(text) == direction * ceil(Fraction(nano, 10**9))


@pytest.mark.parametrize(
    ("text", "in_milli", "in_units"),
    [
        ("100m", 100, 1),
        ("0.1m", 1, 1),
        ("1n", 1, 1),
        ("1.5Gi", 1610612736000, 1610612736),
        ("1.", 1000, 1),
        (".5", 500, 1),
        (" 2 ", 2000, 2),
        (2, 2000, 2),
        (0.25, 250, 1),
        ("0", 0, 0),
        ("00012", 12000, 12),
        ("75992687867101k", 2205711572262793536, 75992687867101000),  # overflow: the low 64 bits
        ("9223372036854775807", -1000, 2**63 - 1),
        ("16Ei", -1000, 2**63 - 1),  # binary suffixes stop at the largest 64-bit integer
        ("10E", 0, 0),  # a short number with a large exponent becomes zero
        ("1e1000000000", 0, 0),
        ("1e4294967297", 10000, 10),  # the exponent has 32 bits
    ],
)
def test_edge_cases_equal_kubernetes(text, in_milli, in_units):
    assert value(text) == in_units
    assert milli(text) == in_milli


def test_a_tiny_quantity_is_rounded_up():
    assert (parse_nano("1e-1000000000"), milli("1e-1000000000")) == (1, 1)


@pytest.mark.parametrize(
    "text", ["", "12x", "1 Gi", "1ki", "1e", "1ee3", "m", ".", "-", "0x10", "١", "1e99999999999999999999"]
)
def test_other_text_is_refused(text):
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse_nano(text)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 250, "250m"),
        ("cpu", 4000, "4"),
        ("memory", 512 * 2**20, "512Mi"),
        ("memory", 1500, "1500"),
        ("hugepages-2Mi", 2**21, "2Mi"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_amounts_print_as_kubectl_prints_them(resource, amount, text):
    assert format_quantity(resource, amount) == text


@given(st.integers(0, 2**50))
def test_formatted_amounts_parse_to_the_same_number(number):
    assert value(format_bytes(number)) == number
    assert milli(format_cpu(number)) == number
