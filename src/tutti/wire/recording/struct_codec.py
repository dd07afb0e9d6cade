"""Edits, plans and queue records as JSON, and back.

Contract: `decode(encode(value), type(value))` equals the value, and equal values have equal bytes. The code follows the
fields of the structs, so a new field or a new edit needs no change here. An edit carries its class name as ``type``; a
Kubernetes object in a field of type `Object` is written as two fields, its ``kind`` and the ``object``, because the
bytes of an object do not say which kind it is:

    {"type":"Put","kind":"Pod","object":{"metadata":{"name":"web-0"}}}

Fields with their default values are left out, sets are sorted, and mappings keep their order. Bytes that do not fit
raise `InputError` with the field. Unknown fields are errors: they could change the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Raw

from tutti.cluster.edits import Edit
from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, KubeStruct, Object
from tutti.kube.reading.convert import convert, decode_error
from tutti.kube.reading.sources import Source

T = TypeVar("T")
Decode = Callable[[bytes | Raw], Any]
TYPE, KIND, OBJECT = "type", "kind", "object"
_SCALARS = frozenset((str, int, bool, float, NoneType))
_ENCODER = msgspec.json.Encoder()
_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
_TEXT = msgspec.json.Decoder(str)


class _Field(NamedTuple):
    """A field of a struct, and its name in JSON."""

    name: str
    wire_name: str
    default: Any
    decode: Decode


def encode(value: Any) -> bytes:
    """Return a struct as JSON without line breaks."""
    return _ENCODER.encode(plain(value))


def decode(data: bytes | Raw, kind: type[T]) -> T:
    """Return the struct of a class; `Edit` stands for all edits."""
    cls: Any = kind
    value: T = _decoder_of(cls)(data)
    return value


def plain(value: Any) -> Any:
    """Return a value in a form that msgspec encodes by the rules of this module."""
    if type(value) in _SCALARS:  # most values of a plan
        return value
    if isinstance(value, msgspec.Struct) and not isinstance(value, KubeStruct):
        return _plain_struct(value)
    if isinstance(value, tuple | list):
        return [item if type(item) in _SCALARS else plain(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _plain_struct(value: msgspec.Struct) -> dict[str, Any]:
    config = type(value).__struct_config__
    fields: dict[str, Any] = {} if config.tag_field is None else {config.tag_field: config.tag}
    for name, wire_name, default, _ in fields_of(type(value)):
        item = getattr(value, name)
        if wire_name == OBJECT:
            fields |= {KIND: item.KIND, OBJECT: item}
        elif default is NODEFAULT or item != default:
            fields[wire_name] = item if type(item) in _SCALARS else plain(item)
    return fields


# Classes --------------------------------------------------------------------------------------------------------------


@cache
def fields_of(cls: type[msgspec.Struct]) -> tuple[_Field, ...]:
    """Return the fields of a class with their names in JSON."""
    return tuple(_described_fields(cls))


def _described_fields(cls: type[msgspec.Struct]) -> Iterator[_Field]:
    for field in msgspec.structs.fields(cls):
        default = field.default if field.default_factory is NODEFAULT else field.default_factory()
        wire_name = OBJECT if field.type is Object else field.encode_name
        yield _Field(field.name, wire_name, default, _decoder_of(field.type))


@cache
def edit_classes() -> dict[str, type[Edit]]:
    """Return all classes of edits by their tags."""
    return {str(cls.__struct_config__.tag): cls for cls in _subclasses(Edit)}


def _subclasses(cls: type[Edit]) -> Iterator[type[Edit]]:
    for each in cls.__subclasses__():
        yield each
        yield from _subclasses(each)


# Decoding -------------------------------------------------------------------------------------------------------------


@cache
def _decoder_of(kind: Any) -> Decode:
    """Return the function that decodes values of a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType) and NoneType in arguments and len(arguments) == 2:
        return _optional(_decoder_of(next(each for each in arguments if each is not NoneType)))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _decoder_of(arguments[0])
        return lambda data: tuple(item(each) for each in _checked(_ITEMS.decode, data))
    if origin is dict:
        value = _decoder_of(arguments[1])
        return lambda data: {name: value(each) for name, each in _checked(_FIELDS.decode, data).items()}
    if kind is Edit:
        return _decode_edit
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not issubclass(kind, KubeStruct):
        return lambda data: _decode_struct(_checked(_FIELDS.decode, data), kind)
    decoder = msgspec.json.Decoder(kind)
    return lambda data: _checked(decoder.decode, data)


def _optional(decode_value: Decode) -> Decode:
    return lambda data: None if bytes(data) == b"null" else decode_value(data)


def _checked(decode_value: Decode, data: bytes | Raw) -> Any:
    try:
        return decode_value(data)
    except msgspec.ValidationError as error:
        raise decode_error(error, Source("", b"")) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"JSON is malformed: {error}") from None


def _decode_edit(data: bytes | Raw) -> Any:
    raw = _checked(_FIELDS.decode, data)
    name = _checked(_TEXT.decode, raw[TYPE]) if TYPE in raw else ""
    cls = edit_classes().get(name)
    if cls is None:
        raise InputError(f'"{name}" is not an edit (want one of {", ".join(sorted(edit_classes()))})', field=TYPE)
    return _decode_struct(raw, cls)


def _decode_struct(raw: dict[str, Raw], cls: Any) -> Any:
    values: dict[str, Any] = {}
    config = cls.__struct_config__
    known: set[str] = set() if config.tag_field is None else {config.tag_field}
    for field in fields_of(cls):
        known.add(field.wire_name)
        data = raw.get(field.wire_name)
        if field.wire_name == OBJECT:
            known.add(KIND)
            values[field.name] = _decode_object(raw)
        elif data is not None:
            try:
                values[field.name] = field.decode(data)
            except InputError as error:
                path = f"{field.wire_name}.{error.field}" if error.field else field.wire_name
                raise InputError(error.problem, obj=error.obj, field=path) from None
        elif field.default is NODEFAULT:
            raise InputError("the field is missing", field=field.wire_name)
    if len(raw) > len(known) or not raw.keys() <= known:
        raise InputError(f"{cls.__name__} has no such field", field=min(raw.keys() - known))
    return cls(**values)


def _decode_object(raw: dict[str, Raw]) -> Object:
    """Decode the object of a known kind in the fields of an edit."""
    if OBJECT not in raw:
        raise InputError("the field is missing", field=OBJECT)
    kind = _checked(_TEXT.decode, raw[KIND]) if KIND in raw else ""
    decoder = _object_decoders().get(kind)
    if decoder is None:
        raise InputError(f'"{kind}" is not a kind that Tutti reads', field=KIND)
    try:
        obj: Object = decoder.decode(raw[OBJECT])
    except msgspec.ValidationError:
        # A recording of another program may have nulls, which `convert` drops; otherwise `convert` names the field.
        obj = convert(msgspec.json.decode(raw[OBJECT]), kind, source=Source("", b""))
    return obj


@cache
def _object_decoders() -> dict[str, msgspec.json.Decoder[Any]]:
    return {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
