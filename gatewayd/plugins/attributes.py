"""Attributes of foreign objects as they are stored: no code of their classes runs for a look.

`inspect.getattr_static` does the same for every kind of object, and takes ten times as long.
"""

from collections.abc import Mapping
from types import GetSetDescriptorType
from typing import Any, Final

MISSING: Final = object()

_classes: Final = type.__dict__["__mro__"].__get__
_namespace: Final = type.__dict__["__dict__"].__get__


def find_stored(instance: Any, name: str, default: Any = None) -> Any:
    """Return what is stored under a name on an object that is no class, or else on its classes.

    A descriptor of a class that decides about writing, such as a property, goes before the object's own.
    """
    classes = _classes(type(instance))
    shared = MISSING
    for cls in classes:
        shared = _namespace(cls).get(name, MISSING)
        if shared is not MISSING:
            break
    own = _own(instance, classes).get(name, MISSING)
    if own is MISSING or (shared is not MISSING and _is_deciding(shared)):
        return default if shared is MISSING else shared
    return own


def _own(instance: Any, classes: tuple[type, ...]) -> Mapping[str, Any]:
    """Return what is stored on the object itself; nothing where a class says for itself what that is."""
    for cls in classes:
        found = _namespace(cls).get("__dict__")
        if found is None:
            continue
        if type(found) is GetSetDescriptorType and found.__objclass__ is cls:
            stored: Mapping[str, Any] = found.__get__(instance)
            return stored
        return {}
    return {}


def _is_deciding(attribute: Any) -> bool:
    names = [_namespace(cls) for cls in _classes(type(attribute))]
    return any("__get__" in one for one in names) and any(
        "__set__" in one or "__delete__" in one for one in names
    )
