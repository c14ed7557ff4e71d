"""Validation and schemas of valves, by the classes `Valves` and `UserValves` of a plugin.

All functions but `find_class` run code of the plugin; call them on its event loop or in its threads.
"""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from gatewayd.errors import GatewayError, invalid
from gatewayd.plugins.runtime.invoke import run_guarded, run_guarded_async
from gatewayd.plugins.runtime.static_attributes import find_stored

VALVES: Final = "Valves"
USER_VALVES: Final = "UserValves"

Choices = list[tuple[dict[str, Any], Callable[[], Any]]]
"""Schemas of select inputs, and the functions to await for their options."""


def find_class(owner: Any, name: str) -> type[Any] | None:
    """Return a class among the attributes of an instance, None when absent; no code of the plugin runs."""
    found = find_stored(owner, name)
    return found if isinstance(found, type) else None


def make(cls: type[Any], stored: Mapping[str, Any]) -> Any:
    """Return an instance of the valves class; a stored None means the default.

    Raises the errors of the class.
    """
    return cls(**{name: value for name, value in stored.items() if value is not None})


def merge_valves(cls: type[Any], stored: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored valves with `values` merged in; None removes a value.

    Fields that the class does not have are dropped. Raises invalid_request that names the first faulty field.
    """
    merged = {name: value for name, value in {**stored, **values}.items() if value is not None}
    try:
        result = make(cls, merged)
    except (ValidationError, ValueError, TypeError) as error:
        raise invalid(f"cannot accept valves: {describe_fault(error)}", param=error_field(error)) from error
    if not isinstance(result, BaseModel):
        return _checked(merged)
    dumped = result.model_dump(exclude_unset=True)
    # A SecretStr or datetime is not a JSON value; store the value it was made from.
    return _checked({name: value if _is_plain(value) else merged.get(name) for name, value in dumped.items()})


def describe_fault(error: BaseException) -> str:
    """Return the reason why valves are invalid, with the name of the field where it is known."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"field {where!r}: {first['msg']}" if where else first["msg"]
    return f"{type(error).__name__}: {error}"


def error_field(error: BaseException) -> str | None:
    """Return the name of the faulty field; None when the error names none."""
    if isinstance(error, ValidationError):
        where = error.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
        return ".".join(str(part) for part in where) or None
    return None


def schema(cls: type[Any], user: Mapping[str, Any] | None) -> tuple[dict[str, Any] | None, Choices]:
    """Return the JSON schema of a valves class, None without one, and the options left for `fill_options`.

    `input.options` that name a method of the class are replaced by its result; an empty list when it fails.
    """
    if not issubclass(cls, BaseModel):
        return None, []
    result = cls.model_json_schema()
    pending = []
    for described in result.get("properties", {}).values():
        input_schema = described.get("input") if isinstance(described, dict) else None
        if isinstance(input_schema, dict) and isinstance(input_schema.get("options"), str):
            input_schema["options"], fetch = _choice(cls, input_schema["options"], user)
            if fetch is not None:
                pending.append((input_schema, fetch))
    return result, pending


async def fill_options(pending: Choices) -> None:
    """Await the options of asynchronous methods, on the event loop of the plugin."""
    for input_schema, fetch in pending:
        input_schema["options"] = _option_list((await run_guarded_async(fetch)).value)


def _choice(
    cls: type[Any], name: str, user: Mapping[str, Any] | None
) -> tuple[list[Any], Callable[[], Any] | None]:
    """Return the options of a method, or the function to await for them."""
    fetch = partial(_options, cls, name, user)
    if inspect.iscoroutinefunction(getattr(cls, name, None)):
        return [], fetch
    found = run_guarded(fetch).value
    return ([], partial(_same, found)) if inspect.isawaitable(found) else (_option_list(found), None)


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


def _option_list(found: Any) -> list[Any]:
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
            raise invalid(f"cannot accept valves: field {name!r} is not a JSON value", param=name)
    return values


def no_valves_error(plugin_id: str) -> GatewayError:
    """Return the error for a plugin without valves of the requested kind."""
    return invalid(f"cannot set the valves of {plugin_id!r}: it has none")
