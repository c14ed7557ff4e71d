"""Static lookup of attributes of plugin objects, which runs no code of their classes.

`inspect.getattr_static` does the same for every kind of object, and takes ten times as long.
"""

from collections.abc import Callable
from functools import partialmethod, singledispatchmethod
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType, MethodType
from typing import Any, Final

MISSING: Final = object()

_PLAIN_TYPES: Final = frozenset(
    {
        *(bool, bytes, dict, float, int, list, set, str, tuple, type, type(None)),
        *(FunctionType, MethodType, classmethod, staticmethod, partialmethod, singledispatchmethod),
        *(GetSetDescriptorType, MemberDescriptorType, MethodDescriptorType),
    }
)
"""Types whose values can be read without running code of a plugin: plain values, methods and slots."""

_classes: Final = type.__dict__["__mro__"].__get__
_namespace: Final = type.__dict__["__dict__"].__get__


def find_stored(instance: Any, name: str, default: Any = None) -> Any:
    """Return the stored attribute of an instance, or else of its classes; `default` when absent.

    A data descriptor of a class, such as a property, precedes the attribute of the instance.
    """
    shared = find_shared(type(instance), name)
    own = _own(instance, name)
    if own is MISSING or (shared is not MISSING and _is_data_descriptor(shared)):
        return default if shared is MISSING else shared
    return own


def find_shared(cls: type, name: str) -> Any:
    """Return the attribute of a class or of its bases; MISSING when absent."""
    for base in _classes(cls):
        found = _namespace(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def is_plain(value: Any) -> bool:
    """Whether a value has a built-in type, so that no code of a plugin runs when it is used."""
    return type(value) in _PLAIN_TYPES


def is_computed(stored: Any) -> bool:
    """Whether a stored attribute is a descriptor whose code runs on reading, such as a property."""
    return not is_plain(stored) and find_shared(type(stored), "__get__") is not MISSING


def storage_of(cls: type) -> Callable[[Any], dict[str, Any]] | None:
    """Return the function that reads the `__dict__` of instances of a class.

    None when instances have none, or when the class defines `__dict__` itself.
    """
    for base in _classes(cls):
        found = _namespace(base).get("__dict__")
        if found is not None:
            is_real = type(found) is GetSetDescriptorType and found.__objclass__ is base
            return found.__get__ if is_real else None
    return None


def _own(instance: Any, name: str) -> Any:
    storage = storage_of(type(instance))
    return MISSING if storage is None else dict.get(storage(instance), name, MISSING)


def _is_data_descriptor(attribute: Any) -> bool:
    """Whether a class attribute is a data descriptor: it defines `__get__` and `__set__` or `__delete__`."""
    kind = type(attribute)
    if kind is FunctionType:
        return False
    names = [_namespace(cls) for cls in _classes(kind)]
    return any("__get__" in one for one in names) and any(
        "__set__" in one or "__delete__" in one for one in names
    )
