"""The part of the gateway that plugins may ask, as a table: what is called how, and with what.

It is made of the interfaces of `plugins.interfaces`. A call for what is not in it, or with other arguments,
is refused.
"""

import inspect
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ConfigDict, ValidationError, create_model

from gatewayd.errors import GatewayError, Kind, invalid
from gatewayd.plugins import interfaces

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
    """One method of a part; `fields` checks its arguments, of which the scope is none."""

    signature: inspect.Signature
    fields: Any
    has_scope: bool

    def read(self, arguments: Any) -> dict[str, Any]:
        """Return arguments as the method takes them; invalid_request for others."""
        try:
            checked = self.fields.model_validate(arguments)
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise invalid(f"cannot answer: the argument {where[:100]!r} does not fit") from None
        return {name: getattr(checked, name) for name in self.fields.model_fields}


def find_method(part: Any, method: Any) -> HostMethod:
    """Return a method; not_found when plugins may not ask for it."""
    known = _METHODS.get((str(part), str(method)))
    if known is None:
        raise GatewayError(
            Kind.NOT_FOUND, f"cannot answer: plugins may not ask {part!s:.60} for {method!s:.60}"
        )
    return known


def _methods() -> Mapping[tuple[str, str], HostMethod]:
    found = {}
    for part, interface in PARTS.items():
        for name, function in vars(interface).items():
            if inspect.isfunction(function) and not name.startswith("_"):
                found[part, name] = _method(f"{part}_{name}", function)
    return found


def _method(name: str, function: Any) -> HostMethod:
    signature = inspect.signature(function)
    hints = typing.get_type_hints(function)
    taken = [one for one in signature.parameters if one not in ("self", SCOPE)]
    fields: dict[str, Any] = {one: (hints[one], ...) for one in taken}
    model = create_model(name, __config__=_STRICT, **fields)
    without_self = signature.replace(parameters=list(signature.parameters.values())[1:])
    return HostMethod(without_self, model, SCOPE in signature.parameters)


_METHODS: Final = _methods()
