"""Attributes of foreign objects as they are stored: no code of their classes runs for a look.

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
"""Types of what is read without running code of a plugin: plain values, methods, and slots."""

_classes: Final = type.__dict__["__mro__"].__get__
_namespace: Final = type.__dict__["__dict__"].__get__


def find_stored(instance: Any, name: str, default: Any = None) -> Any:
    """Return what is stored under a name on an object that is no class, or else on its classes.

    A descriptor of a class that decides about writing, such as a property, goes before the object's own.
    """
    shared = find_shared(type(instance), name)
    own = _own(instance, name)
    if own is MISSING or (shared is not MISSING and _decides(shared)):
        return default if shared is MISSING else shared
    return own


def find_shared(cls: type, name: str) -> Any:
    """Return what a class or one of its bases has under a name; MISSING for nothing."""
    for base in _classes(cls):
        found = _namespace(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def is_plain(value: Any) -> bool:
    """Tell whether a value is one of Python's own types, of which no code of a plugin runs."""
    return type(value) in _PLAIN_TYPES


def is_computed(stored: Any) -> bool:
    """Tell whether what is stored is a descriptor whose own code runs when it is read, such as a property."""
    return not is_plain(stored) and find_shared(type(stored), "__get__") is not MISSING


def storage_of(cls: type) -> Callable[[Any], dict[str, Any]] | None:
    """Return what gives the attributes that objects of a class store themselves.

    None where they have none, or the class says for itself what that is.
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


def _decides(attribute: Any) -> bool:
    """Tell whether an attribute of a class decides about reading and writing it on objects."""
    kind = type(attribute)
    if kind is FunctionType:
        return False
    names = [_namespace(cls) for cls in _classes(kind)]
    return any("__get__" in one for one in names) and any(
        "__set__" in one or "__delete__" in one for one in names
    )
