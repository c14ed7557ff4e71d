"""Table of the host methods that a plugin process may call, with the validation of their arguments.

It is derived from the interfaces in `plugins.interfaces`. Other methods and invalid arguments are refused.
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
"""Members of `PluginHost` with methods, and their interfaces."""

SCOPE: Final = "scope"
"""Name of the parameter for the scope of a call, which the process identifies by a number."""

_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class HostMethod:
    """One method of a part; `function` is the function of the interface."""

    name: str
    function: Any

    @property
    def signature(self) -> inspect.Signature:
        """Signature without `self`, including the scope."""
        return _signature(self.function)

    @property
    def has_scope(self) -> bool:
        """Whether the method takes the scope of the call."""
        return SCOPE in self.signature.parameters

    def read(self, arguments: Any) -> dict[str, Any]:
        """Return the validated arguments without the scope; invalid_request for invalid ones."""
        fields = _fields(self.name, self.function)
        known = fields.model_fields
        # Pydantic would collect an error for each of possibly a million names.
        _refuse_others(arguments, known)
        if isinstance(arguments, dict):
            _refuse_others(arguments.get("upload"), HostUpload.__dataclass_fields__)
        try:
            checked = fields.model_validate(arguments)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise invalid(f"cannot serve host call: the argument {where[:100]!r} is invalid") from None
        return {name: getattr(checked, name) for name in known}


def find_method(part: Any, method: Any) -> HostMethod:
    """Return a method; not_found when plugins may not call it."""
    interface = PARTS.get(str(part))
    function = None if interface is None else vars(interface).get(str(method))
    if not inspect.isfunction(function) or str(method).startswith("_"):
        name = f"{part!s:.60}.{method!s:.60}"
        raise GatewayError(ErrorKind.NOT_FOUND, f"cannot serve host call: there is no method {name}")
    return HostMethod(f"{part}_{method}", function)


@functools.cache
def _signature(function: Any) -> inspect.Signature:
    signature = inspect.signature(function)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


@functools.cache
def _fields(name: str, function: Any) -> type[BaseModel]:
    """Return the model of the arguments of a method, without the scope."""
    hints = typing.get_type_hints(function)
    fields: dict[str, Any] = {
        one: (_bounded(hints[one]), ...) for one in _signature(function).parameters if one != SCOPE
    }
    return create_model(name, __config__=_STRICT, **fields)


def _bounded(hint: Any) -> Any:
    """Return a type whose validation stops at the first error and does not descend into JSON objects."""
    if typing.get_origin(hint) is Sequence:
        return Annotated[list[typing.get_args(hint)], FailFast()]  # type: ignore[misc]
    return InstanceOf[dict[str, Any]] if typing.get_origin(hint) is Mapping else hint


def _refuse_others(given: Any, known: Collection[str]) -> None:
    other = next((name for name in given if name not in known), None) if isinstance(given, dict) else None
    if other is not None:
        raise invalid(f"cannot serve host call: the argument {str(other)[:100]!r} is invalid")
