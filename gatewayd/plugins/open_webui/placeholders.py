"""Stands in for a name that plugins import at their top and this gateway does not have."""

from typing import Any, NoReturn

from pydantic_core import core_schema


class NotProvidedError(NotImplementedError, AttributeError):
    """A plugin used something that this gateway does not have; `hasattr` sees it as absent."""


def missing_name_sentence(name: str) -> str:
    """Return what a plugin is told about a name that is not there."""
    return f"{name} is not provided by this gateway"


def raise_not_provided(name: str) -> NoReturn:
    """Raise the error for a name that is not there."""
    raise NotProvidedError(missing_name_sentence(name))


class PlaceholderType(type):
    """The type of placeholders: a class, so that annotations and base classes may name them."""

    def __call__(cls, *_: Any, **__: Any) -> Any:
        """Raise NotProvidedError: it is neither called nor instantiated."""
        raise_not_provided(placeholder_name(cls))

    def __getattr__(cls, attribute: str) -> Any:
        """Raise AttributeError for what Python looks up itself, NotProvidedError for the rest."""
        if attribute.startswith("__") and attribute.endswith("__"):
            raise AttributeError(attribute)
        raise_not_provided(f"{placeholder_name(cls)}.{attribute}")

    def __repr__(cls) -> str:
        return f"<{missing_name_sentence(placeholder_name(cls))}>"


def any_schema(_cls: Any, _source: Any, _handler: Any) -> core_schema.CoreSchema:
    """Let pydantic take any value where a model names a placeholder."""
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
    """Return the full name that a placeholder, or a class made of one, stands for."""
    name: str = type.__getattribute__(cls, "__placeholder_name__")
    return name
