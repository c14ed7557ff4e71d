"""Valves one by one, for people: what is set and what is a secret; and texts read as values."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import invalid, shorten

Schema = Mapping[str, Any]

MASK: Final = "********"
"""What stands for a secret."""

_SECRET: Final = re.compile(r"(?:^|_)(?:key|keys|token|tokens|secret|password|passwd|credentials?)(?:$|_)")
_TOKENS_OF_MODELS: Final = re.compile(r"(?:^|_)(?:max|min|num|count|limit|budget)(?:$|_)")


@dataclass(frozen=True, slots=True)
class ListedValve:
    """One valve; `value` is what is in force, `is_set` whether it was set or is the default.

    `is_known` is false for what is stored although the plugin has no such valve any more.
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
    """Return the valves of a schema in its order, then those that are only stored.

    Without a schema it is unknown what is a secret, so every text counts as one.
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
    """Return what stands for a secret value; nothing stands for none."""
    return MASK if value not in (None, "", [], {}) else value


def is_secret_name(name: str) -> bool:
    """Tell whether a valve is a secret by its name; a number of tokens is none."""
    low = name.lower()
    return bool(_SECRET.search(low)) and not _TOKENS_OF_MODELS.search(low)


def parse_values(schema: Schema | None, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return texts of a command line as values; what its type says is a list or an object is read as JSON.

    Numbers and switches are left to the class of the valves, which reads them. Raises invalid_request naming
    the valve whose text is no JSON.
    """
    properties = _properties(schema)
    return {name: _read(name, text, properties.get(name, {})) for name, text in texts.items()}


def check_names(schema: Schema | None, names: Iterable[str]) -> None:
    """Raise invalid_request for a valve that there is not; nothing is known without a schema."""
    if schema is None or schema.get("additionalProperties"):
        return
    properties = _properties(schema)
    for name in names:
        if name not in properties:
            known = ", ".join(properties) or "none"
            raise invalid(f"cannot find valve {shorten(name)!r}: there are {known}", param=name)


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
    """Return the type of a valve in words, without null; "" when it may be anything."""
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
            f"cannot read valve {name!r}: it is of type {wanted}, give it as JSON", param=name
        ) from None
