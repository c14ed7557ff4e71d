"""Changes `response_format` of a chat request to a form that a family takes; pure."""

from typing import Final

import orjson

from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.quotes import quoted
from gatewayd.dialects.providers.rules import Rules
from gatewayd.dialects.providers.schemas import is_strict_schema

MAX_SCHEMA_BYTES: Final = 64 * 1024
"""Maximum length of a schema that is written into an instruction, as JSON."""

ANY_OBJECT: Final = {"name": "object", "schema": {"type": "object"}}
"""The schema of any object, for families that take JSON with a schema only."""

INSTRUCTION: Final = "Answer with one JSON object and nothing else. It follows this JSON schema: "
"""Beginning of the instruction that stands for a schema."""


def adapt_format(body: Body, rules: Rules, warnings: list[str]) -> None:
    """Change the format of a request, a copy."""
    given = as_mapping(body.get("response_format"))
    kind = given.get("type")
    if kind is None:
        return
    taken = rules.response_formats
    if taken is None or kind in taken:
        if kind == "json_schema" and rules.strict_schemas:
            _check_strictness(body, rules, warnings)
    elif kind == "text":
        del body["response_format"]
    elif kind == "json_object" and "json_schema" in taken:
        body["response_format"] = {"type": "json_schema", "json_schema": ANY_OBJECT}
    elif kind == "json_schema":
        _instruct(body, rules, taken, warnings)
    else:
        del body["response_format"]
        warnings.append(f"left out response_format {quoted(kind)}: {rules.title} does not take it")


def _check_strictness(body: Body, rules: Rules, warnings: list[str]) -> None:
    wrapped = as_mapping(body["response_format"].get("json_schema"))
    if wrapped.get("strict") is not True or is_strict_schema(wrapped.get("schema")):
        return
    body["response_format"] = {**body["response_format"], "json_schema": {**wrapped, "strict": False}}
    warnings.append(
        f"changed response_format.json_schema.strict to False: the schema has more than {rules.title} takes"
    )


def _instruct(body: Body, rules: Rules, taken: frozenset[str], warnings: list[str]) -> None:
    """Ask for the schema in an instruction, and for a JSON object where the family has that."""
    schema = as_mapping(as_mapping(body["response_format"]).get("json_schema")).get("schema")
    text = _written(schema)
    if "json_object" in taken:
        body["response_format"] = {"type": "json_object"}
    else:
        del body["response_format"]
    told = "left out"
    if text and len(text) <= MAX_SCHEMA_BYTES:
        told = "changed to an instruction"
        instruction = {"role": "system", "content": INSTRUCTION + text.decode()}
        messages = list(as_sequence(body.get("messages")))
        place = next((at for at, item in enumerate(messages) if not _instructs(item)), len(messages))
        body["messages"] = [*messages[:place], instruction, *messages[place:]]
    warnings.append(f"{told}: the schema of response_format, as {rules.title} takes none")


def _written(schema: object) -> bytes:
    """Return a schema as JSON, b"" for none and for one of a plugin that is no JSON."""
    try:
        return orjson.dumps(schema) if isinstance(schema, dict) else b""
    except orjson.JSONEncodeError:
        return b""


def _instructs(message: object) -> bool:
    return as_mapping(message).get("role") in {"system", "developer"}
