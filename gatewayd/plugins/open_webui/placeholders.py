"""Placeholders for missing `open_webui` names, and the import of optional web libraries."""

import importlib
from typing import Any, NoReturn

from pydantic_core import core_schema

from gatewayd.extras import PackageExtra, missing_extra_error


class NotProvidedError(NotImplementedError, AttributeError):
    """A plugin used a name that this gateway lacks; `hasattr` returns False for it."""


def missing_name_sentence(name: str) -> str:
    """Return the error sentence for a missing name."""
    return f"{name} is not provided by this gateway"


def raise_not_provided(name: str) -> NoReturn:
    """Raise NotProvidedError for a missing name."""
    raise NotProvidedError(missing_name_sentence(name))


class PlaceholderType(type):
    """Metaclass of placeholders, which are classes, so that annotations and base classes can use them."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        """Raise NotProvidedError: a placeholder cannot be called."""
        raise_not_provided(placeholder_name(cls))

    def __getattr__(cls, attribute: str) -> Any:
        """Raise AttributeError for names with double underscores, NotProvidedError for others."""
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        raise_not_provided(f"{placeholder_name(cls)}.{attribute}")

    def __repr__(cls) -> str:
        return f"<{missing_name_sentence(placeholder_name(cls))}>"


def any_schema(_cls: Any, _source: Any, _handler: Any) -> core_schema.CoreSchema:
    """Return a schema that accepts any value, for models annotated with a placeholder."""
    return core_schema.any_schema()


def make_placeholder(name: str) -> PlaceholderType:
    """Return a placeholder for a full name such as `open_webui.models.skills.Skills`."""
    members = {
        "__module__": name.rpartition(".")[0],
        "__placeholder_name__": name,
        "__get_pydantic_core_schema__": classmethod(any_schema),
    }
    return PlaceholderType(name.rpartition(".")[2], (), members)


def placeholder_name(cls: type) -> str:
    """Return the full name of a placeholder or of a class derived from one."""
    name: str = type.__getattribute__(cls, "__placeholder_name__")
    return name


def load_web_module(module: str) -> Any:
    """Import a module of starlette, fastapi or httpx on demand; not_configured when it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra_error(f"cannot give plugins {module}", PackageExtra.PLUGINS) from error
