"""How many bytes the decoders of Tutti make values of, and how many they only look through."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import pytest
import yaml

from tutti.wire.gardener import schema as gardener_schema

_Decoder = msgspec.json.Decoder


class DecodeCounter:
    """Counts from `install` on; `values` are bytes that became values, `names` bytes whose names were compared.

    Parts that a decoder leaves undecoded (`msgspec.Raw`) are no values: they count when they are decoded themselves.
    """

    def __init__(self) -> None:
        self.values = self.names = self.looked_through = 0

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]

    def count(self, size: int, result: Any) -> None:
        undecoded = _undecoded(result)
        self.values += size - undecoded
        self.looked_through += undecoded

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Wrap every decoder that a module of Tutti has or makes, `msgspec.json.decode`, and the YAML parser."""
        for name, module in list(sys.modules.items()):
            if name.startswith("tutti."):
                self._wrap_decoders_of(module, patch)
        gardener_schema._field_decoders.cache_clear()
        made = {
            name: each._replace(value=_Counting(self, each.value), names=each.names and _NameCheck(self, each.names))
            for name, each in gardener_schema._field_decoders().items()
        }
        patch.setattr(gardener_schema, "_field_decoders", lambda: made)
        decode, load_all = msgspec.json.decode, yaml.load_all

        def counting_decode(data: Any, **options: Any) -> Any:
            result = None
            try:
                result = decode(data, **options)
            finally:
                self.count(len(memoryview(data)), result)
            return result

        def counting_load_all(data: Any, **options: Any) -> Any:
            self.count(len(data), None)
            return load_all(data, **options)

        patch.setattr(msgspec.json, "decode", counting_decode)
        patch.setattr(yaml, "load_all", counting_load_all)

    def _wrap_decoders_of(self, module: Any, patch: pytest.MonkeyPatch) -> None:
        for name, value in list(vars(module).items()):
            if isinstance(value, _Decoder):
                patch.setattr(module, name, _Counting(self, value))
            elif isinstance(value, dict):
                for key, inner in list(value.items()):
                    if isinstance(inner, _Decoder):
                        patch.setitem(value, key, _Counting(self, inner))


class _Counting:
    def __init__(self, counter: DecodeCounter, decoder: Any) -> None:
        self.counter, self.decoder = counter, decoder

    def decode(self, data: Any) -> Any:
        result = None
        try:
            result = self.decoder.decode(data)
        finally:
            self.counter.count(len(memoryview(data)), result)
        return result


class _NameCheck(_Counting):
    def decode(self, data: Any) -> Any:
        self.counter.names += len(memoryview(data))
        return self.decoder.decode(data)


def _undecoded(value: Any) -> int:
    if isinstance(value, msgspec.Raw):
        return len(memoryview(value))
    if isinstance(value, dict):
        return sum(map(_undecoded, value.values()))
    if isinstance(value, list):
        return sum(map(_undecoded, value))
    if isinstance(value, msgspec.Struct):
        return sum(_undecoded(getattr(value, field)) for field in value.__struct_fields__)
    return 0
