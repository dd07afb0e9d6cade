"""Resource amounts as text for the report: rounded, in cores and GiB."""

from __future__ import annotations

_BYTES = ("memory", "ephemeral-storage")
_UNITS = (("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def amount_text(resource: str, amount: int) -> str:
    """Return an amount in the units of `kube.resources` as text: ``1.5``, ``7.2 Gi``."""
    if resource == "cpu":
        return _rounded(amount / 1000)
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, bits in _UNITS:
            if amount >= 1 << bits:
                return f"{_rounded(amount / (1 << bits))} {unit}"
    return f"{amount:,}"


def resource_text(resource: str) -> str:
    """Return the name of a resource without the vendor's domain: ``gpu`` for ``nvidia.com/gpu``."""
    return resource.rpartition("/")[2]


def _rounded(number: float) -> str:
    text = f"{number:,.2f}" if number < 10 else f"{number:,.1f}"
    return text.rstrip("0").rstrip(".")
