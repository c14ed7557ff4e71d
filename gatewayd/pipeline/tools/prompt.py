"""Tools for models without native tool calls: a separate prompt asks which functions to call; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd import ids
from gatewayd.completions.deltas import text_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.pipeline.documents.prompt_context import last_question
from gatewayd.pipeline.tasks.prompts import find_json_object

MAX_PROMPT_MESSAGES: Final = 4
"""Number of messages in the prompt."""

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


def tool_choice_request(
    specs: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]
) -> list[Body]:
    """Return the messages that ask a model which functions to call."""
    instructions = TEMPLATE.format(specs=orjson.dumps(list(specs), option=orjson.OPT_INDENT_2).decode())
    recent = [message for message in messages if message.get("role") in ("user", "assistant")]
    history = "\n".join(_line(message) for message in recent[-MAX_PROMPT_MESSAGES:])
    query = last_question([dict(message) for message in messages])
    question = f"History:\n{history}\n\nQuery: {query}"
    return [{"role": "system", "content": instructions}, {"role": "user", "content": question}]


def _line(message: Mapping[str, Any]) -> str:
    return f'{as_text(message.get("role")).upper()}: """{text_of(message)}"""'


def parse_tool_choice(answer: str, names: Mapping[str, object], new_id: ids.NewId = ids.new_id) -> list[Body]:
    """Return the calls in an answer as tool calls; unreadable and unknown ones are dropped."""
    value = find_json_object(answer) or {}
    listed = value.get("tool_calls", [value] if value.get("name") else [])
    calls = []
    for item in (as_mapping(each) for each in as_sequence(listed)):
        name = as_text(item.get("name"))
        if name in names:
            arguments = orjson.dumps(dict(as_mapping(item.get("parameters")))).decode()
            function = {"name": name, "arguments": arguments}
            calls.append({"id": f"call_{new_id()}", "type": "function", "function": function})
    return calls
