"""Tools for models that know none: a model is asked beforehand, in words, which to call; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd import ids
from gatewayd.completions.deltas import said
from gatewayd.completions.json_access import mapping, sequence, text
from gatewayd.completions.records import Body
from gatewayd.pipeline.documents.prompt_context import last_question
from gatewayd.pipeline.tasks.prompts import object_in

LAST_MESSAGES: Final = 4
"""How much of the conversation the choice is made by."""

TEMPLATE: Final = """\
Choose which of the functions below to call, if any, so that the query can be answered.

Functions, as a JSON list:
{specs}

Answer with a JSON object and nothing else:
{{"tool_calls": [{{"name": "name of the function", "parameters": {{"name of the parameter": "value"}}}}]}}

- Use only the names that are listed, and only parameters of their specifications.
- Name several calls when several are needed.
- Answer {{"tool_calls": []}} when no function helps.
"""


def choosing(specs: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> list[Body]:
    """Return the messages by which a model is asked which of the functions to call."""
    told = TEMPLATE.format(specs=orjson.dumps(list(specs), option=orjson.OPT_INDENT_2).decode())
    recent = [message for message in messages if message.get("role") in ("user", "assistant")]
    history = "\n".join(_line(message) for message in recent[-LAST_MESSAGES:])
    query = last_question([dict(message) for message in messages])
    asked = f"History:\n{history}\n\nQuery: {query}"
    return [{"role": "system", "content": told}, {"role": "user", "content": asked}]


def _line(message: Mapping[str, Any]) -> str:
    return f'{text(message.get("role")).upper()}: """{said(message)}"""'


def chosen(answer: str, names: Mapping[str, object], new_id: ids.NewId = ids.new_id) -> list[Body]:
    """Return the calls that an answer names, as tool calls; what cannot be read, or is not known, is none."""
    value = object_in(answer) or {}
    listed = value.get("tool_calls", [value] if value.get("name") else [])
    calls = []
    for item in (mapping(each) for each in sequence(listed)):
        name = text(item.get("name"))
        if name in names:
            arguments = orjson.dumps(dict(mapping(item.get("parameters")))).decode()
            function = {"name": name, "arguments": arguments}
            calls.append({"id": f"call_{new_id()}", "type": "function", "function": function})
    return calls
