"""What administrators and users set in plugins: checked against the plugin's own classes.

Everything here but `find_class` runs code of the plugin, so it is called in its home or threads.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from gatewayd.errors import GatewayError, invalid
from gatewayd.plugins.runtime.attributes import find_stored
from gatewayd.plugins.runtime.invoke import run_guarded, run_guarded_async

VALVES: Final = "Valves"
USER_VALVES: Final = "UserValves"

Choices = list[tuple[dict[str, Any], Callable[[], Any]]]
"""Descriptions of choices, and the methods to await for their options."""


def find_class(owner: Any, name: str) -> type[Any] | None:
    """Return the class of that name of a plugin's instance; no code of the plugin runs for it."""
    found = find_stored(owner, name)
    return found if isinstance(found, type) else None


def make(cls: type[Any], stored: Mapping[str, Any]) -> Any:
    """Return valves over the defaults of their class; None means the default.

    Raises what the class raises.
    """
    return cls(**{name: value for name, value in stored.items() if value is not None})


def merge_valves(cls: type[Any], stored: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored once `values` are merged into it; None takes a value away.

    Fields that the class does not have are dropped. Raises invalid_request naming the first field at fault.
    """
    merged = {name: value for name, value in {**stored, **values}.items() if value is not None}
    try:
        made = make(cls, merged)
    except (ValidationError, ValueError, TypeError) as error:
        raise invalid(f"cannot accept valves: {describe_fault(error)}", param=error_field(error)) from error
    if not isinstance(made, BaseModel):
        return _checked(merged)
    dumped = made.model_dump(exclude_unset=True)
    # A secret or a moment is no JSON value; what was given for it is.
    return _checked({name: value if _is_plain(value) else merged.get(name) for name, value in dumped.items()})


def describe_fault(error: BaseException) -> str:
    """Return what is wrong with valves, with the field's name where it is known."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"field {where!r}: {first['msg']}" if where else first["msg"]
    return f"{type(error).__name__}: {error}"


def error_field(error: BaseException) -> str | None:
    """Return the name of the field that an error is about."""
    if isinstance(error, ValidationError):
        where = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        return ".".join(str(part) for part in where) or None
    return None


def schema(cls: type[Any], user: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, Choices]:
    """Return the JSON schema of valves, None for a class without one, and what is left for `fill_options`.

    `input.options` that name a method of the class become the list that it returns; none when it fails.
    """
    if not issubclass(cls, BaseModel):
        return None, []
    made = cls.model_json_schema()
    left = []
    for described in made.get("properties", {}).values():
        shown = described.get("input") if isinstance(described, dict) else None
        if isinstance(shown, dict) and isinstance(shown.get("options"), str):
            shown["options"], ask = _choice(cls, shown["options"], user)
            if ask is not None:
                left.append((shown, ask))
    return made, left


async def fill_options(left: Choices) -> None:
    """Ask the methods that are awaited for their options, in the home of the plugin."""
    for shown, ask in left:
        shown["options"] = _listed((await run_guarded_async(ask)).value)


def _choice(
    cls: type[Any], name: str, user: Mapping[str, Any] | None
) -> tuple[list[Any], Callable[[], Any] | None]:
    """Return the options that a method gives at once, or what is to be awaited for them."""
    ask = partial(_options, cls, name, user)
    if inspect.iscoroutinefunction(getattr(cls, name, None)):
        return [], ask
    found = run_guarded(ask).value
    return ([], partial(_same, found)) if inspect.isawaitable(found) else (_listed(found), None)


def _options(cls: type[Any], name: str, user: Mapping[str, Any] | None) -> Any:
    method = getattr(cls, name, None)
    if not callable(method):
        return None
    names = inspect.signature(method).parameters
    given = {key: dict(user or {}) for key in ("__user__", "user") if key in names}
    if "self" in names:
        given["self"] = run_guarded(cls).value
    return method(**given)


def _same(value: Any) -> Any:
    return value


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else []


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    for name, value in values.items():
        if not _is_plain(value):
            raise invalid(f"cannot accept valves: field {name!r} is no JSON value", param=name)
    return values


def no_valves_error(plugin_id: str) -> GatewayError:
    """Return the error for a plugin without valves of the kind asked for."""
    return invalid(f"cannot set the valves of {plugin_id!r}: it has none")
