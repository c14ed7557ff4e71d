"""The part of the gateway that plugins may ask, as a table: what is called how, and with what.

It is made of the interfaces of `plugins.interfaces`. A call for what is not in it, or with other arguments,
is refused.
"""

import functools
import inspect
import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, FailFast, InstanceOf, ValidationError, create_model

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.plugins import interfaces
from gatewayd.plugins.interfaces import HostUpload

PARTS: Final[Mapping[str, type]] = {
    "users": interfaces.HostUsers,
    "chats": interfaces.HostChats,
    "files": interfaces.HostFiles,
    "models": interfaces.HostModels,
    "completions": interfaces.HostCompletions,
    "plugins": interfaces.HostPlugins,
    "knowledge": interfaces.HostKnowledge,
    "settings": interfaces.HostSettings,
}
"""The members of `Host` that have methods."""

SCOPE: Final = "scope"
"""The parameter that is the call that something is asked in; the process names it by its number."""

_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class HostMethod:
    """One method of a part; `function` is that of the interface."""

    name: str
    function: Any

    @property
    def signature(self) -> inspect.Signature:
        """The parameters, the scope among them."""
        return _signature(self.function)

    @property
    def has_scope(self) -> bool:
        """Whether it takes the call that it is asked in."""
        return SCOPE in self.signature.parameters

    def read(self, arguments: Any) -> dict[str, Any]:
        """Return arguments as the method takes them, without the scope; invalid_request for others."""
        fields = _fields(self.name, self.function)
        known = fields.model_fields
        # The library would collect an error for each of what may be a million names.
        _refuse_others(arguments, known)
        if isinstance(arguments, dict):
            _refuse_others(arguments.get("upload"), HostUpload.__dataclass_fields__)
        try:
            checked = fields.model_validate(arguments)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise invalid(f"cannot answer: the argument {where[:100]!r} does not fit") from None
        return {name: getattr(checked, name) for name in known}


def find_method(part: Any, method: Any) -> HostMethod:
    """Return a method; not_found when plugins may not ask for it."""
    interface = PARTS.get(str(part))
    function = None if interface is None else vars(interface).get(str(method))
    if not inspect.isfunction(function) or str(method).startswith("_"):
        asked = f"{part!s:.60} for {method!s:.60}"
        raise GatewayError(ErrorKind.NOT_FOUND, f"cannot answer: plugins may not ask {asked}")
    return HostMethod(f"{part}_{method}", function)


@functools.cache
def _signature(function: Any) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


@functools.cache
def _fields(name: str, function: Any) -> type[BaseModel]:
    """Return what checks the arguments of a method but the scope."""
    hints = typing.get_type_hints(function)
    fields: dict[str, Any] = {
        one: (_bounded(hints[one]), ...) for one in _signature(function).parameters if one != SCOPE
    }
    return create_model(name, __config__=_STRICT, **fields)


def _bounded(hint: Any) -> Any:
    """Return a type whose check ends at the first error, and does not look into large objects of JSON."""
    if typing.get_origin(hint) is Sequence:
        return Annotated[list[typing.get_args(hint)], FailFast()]  # type: ignore[misc]
    return InstanceOf[dict[str, Any]] if typing.get_origin(hint) is Mapping else hint


def _refuse_others(given: Any, known: Collection[str]) -> None:
    other = next((name for name in given if name not in known), None) if isinstance(given, dict) else None
    if other is not None:
        raise invalid(f"cannot answer: the argument {str(other)[:100]!r} does not fit")
