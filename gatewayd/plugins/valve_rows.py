"""Listing of valves for administrators, masking of secrets, and parsing of command-line values."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import invalid, shorten

Schema = Mapping[str, Any]

MASK: Final = "********"
"""Replacement for a secret value."""

_SECRET: Final = re.compile(r"(?:^|_)(?:key|keys|token|tokens|secret|password|passwd|credentials?)(?:$|_)")
_TOKENS_OF_MODELS: Final = re.compile(r"(?:^|_)(?:max|min|num|count|limit|budget)(?:$|_)")


@dataclass(frozen=True, slots=True)
class ListedValve:
    """One valve; `value` is the effective value, `is_set` is false for a default.

    `is_known` is false for a stored value whose valve the plugin no longer has.
    """

    name: str
    value: Any
    default: Any = None
    is_set: bool = False
    type: str = ""
    description: str = ""
    is_required: bool = False
    is_secret: bool = False
    is_known: bool = True


def list_valves(schema: Schema | None, stored: Mapping[str, Any]) -> Sequence[ListedValve]:
    """Return the valves in the order of the schema, then stored values without a valve.

    Without a schema every value counts as a secret.
    """
    properties = _properties(schema)
    required = (schema or {}).get("required") or ()
    found = [_row(name, spec, stored, name in required) for name, spec in properties.items()]
    for name, value in stored.items():
        if name not in properties:
            is_secret = schema is None or is_secret_name(name)
            found.append(ListedValve(name, value, is_set=True, is_secret=is_secret, is_known=False))
    return found


def mask_secret(value: Any) -> Any:
    """Return MASK for a secret value; an empty value is returned unchanged."""
    return MASK if value not in (None, "", [], {}) else value


def is_secret_name(name: str) -> bool:
    """Whether the name of a valve suggests a secret; a number of tokens, such as `max_tokens`, is not one."""
    low = name.lower()
    return bool(_SECRET.search(low)) and not _TOKENS_OF_MODELS.search(low)


def parse_values(schema: Schema | None, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return command-line texts as values; the text of a list or object valve is parsed as JSON.

    Numbers and booleans stay text, which the class of the valves converts. Raises invalid_request that names
    the valve whose text is not JSON.
    """
    properties = _properties(schema)
    return {name: _read(name, text, properties.get(name, {})) for name, text in texts.items()}


def check_names(schema: Schema | None, names: Iterable[str]) -> None:
    """Raise invalid_request for a name that is not in the schema; without a schema every name passes."""
    if schema is None or schema.get("additionalProperties"):
        return
    properties = _properties(schema)
    for name in names:
        if name not in properties:
            known = ", ".join(properties) or "none"
            raise invalid(f"cannot find valve {shorten(name)!r}: the valves are {known}", param=name)


def _properties(schema: Schema | None) -> Mapping[str, Any]:
    found = (schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def _row(name: str, spec: Any, stored: Mapping[str, Any], is_required: bool) -> ListedValve:
    described = spec if isinstance(spec, Mapping) else {}
    default = described.get("default")
    return ListedValve(
        name=name,
        value=stored.get(name, default),
        default=default,
        is_set=name in stored,
        type=type_name(described),
        description=str(described.get("description") or ""),
        is_required=is_required,
        is_secret=_is_secret(name, described),
    )


def type_name(spec: Schema) -> str:
    """Return the JSON type of a valve, alternatives joined by "or", without null; "" for any type."""
    if isinstance(spec.get("enum"), list):
        return "choice"
    if isinstance(spec.get("type"), str):
        return str(spec["type"])
    reference = spec.get("$ref")
    if isinstance(reference, str):
        return reference.rpartition("/")[2]
    parts = [type_name(part) for part in spec.get("anyOf") or () if isinstance(part, Mapping)]
    return " or ".join(part for part in dict.fromkeys(parts) if part != "null")


def _is_secret(name: str, spec: Schema) -> bool:
    shown = spec.get("input")
    if spec.get("format") == "password" or spec.get("writeOnly") is True:
        return True
    if isinstance(shown, Mapping) and shown.get("type") == "password":
        return True
    types = type_name(spec)
    return is_secret_name(name) and not {"integer", "number", "boolean"} & set(types.split(" or "))


def _read(name: str, text: str, spec: Any) -> Any:
    types = set(type_name(spec).split(" or ")) if isinstance(spec, Mapping) else set()
    if "string" in types or not {"array", "object"} & types:
        return text
    try:
        return json.loads(text)
    except ValueError:
        wanted = " or ".join(sorted(types))
        raise invalid(
            f"cannot parse valve {name!r}: it has the type {wanted}, pass it as JSON", param=name
        ) from None
