"""One conversation for every kind of source: a picture, a call of a tool after thinking, a schema.

A stand-in answers the first request with `THOUGHT`, `TEXT` and a call, and the one with the result of the
call with `ANSWER`, each in its own protocol, and refuses what its original refuses.
"""

from typing import Any, Final

import orjson

Object = dict[str, Any]

IMAGE_DATA: Final = "iVBORw0KGgo="
THOUGHT: Final = "The picture shows London"
TEXT: Final = "I look it up."
TOOL: Final = "weather"
ARGUMENTS: Final[Object] = {"city": "London"}
RESULT: Final = "rain"
ANSWER: Final = '{"weather":"rain"}'
PROMPT_TOKENS: Final = 30
CACHED_TOKENS: Final = 8
COMPLETION_TOKENS: Final = 12
REASONING_TOKENS: Final = 5

PARAMETERS: Final[Object] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
    "additionalProperties": False,
}
SCHEMA: Final[Object] = {
    "type": "object",
    "properties": {"weather": {"type": "string"}},
    "required": ["weather"],
    "additionalProperties": False,
}


def first_request(model: str) -> Object:
    """Return the first request, as a caller sends it."""
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE_DATA}"}}
    question = {"type": "text", "text": "How is the weather there?"}
    function = {"name": TOOL, "description": "Tells the weather", "parameters": PARAMETERS}
    schema = {"name": "report", "schema": SCHEMA, "strict": True}
    return {
        "model": model,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [question, picture]},
        ],
        "tools": [{"type": "function", "function": function}],
        "response_format": {"type": "json_schema", "json_schema": schema},
        "reasoning_effort": "low",
        "max_completion_tokens": 500,
    }


def second_request(first: Object, message: Object) -> Object:
    """Return the request with the result of the call that `message`, the first answer, holds."""
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in message["tool_calls"]
    ]
    return {**first, "messages": [*first["messages"], message, *results]}


def facts_of(completion: Object) -> Object:
    """Return what every kind of source answers alike."""
    choice = completion["choices"][0]
    message, usage = choice["message"], completion["usage"]
    calls = [
        (call["function"]["name"], orjson.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls", [])
    ]
    return {
        "text": message["content"],
        "thought": message.get("reasoning_content"),
        "calls": calls,
        "reason": choice["finish_reason"],
        "prompt": usage["prompt_tokens"],
        "completion": usage["completion_tokens"],
        "total": usage["total_tokens"],
        "cached": usage["prompt_tokens_details"]["cached_tokens"],
        "reasoning": usage["completion_tokens_details"]["reasoning_tokens"],
    }


USED: Final[Object] = {
    "prompt": PROMPT_TOKENS,
    "completion": COMPLETION_TOKENS,
    "total": PROMPT_TOKENS + COMPLETION_TOKENS,
    "cached": CACHED_TOKENS,
    "reasoning": REASONING_TOKENS,
}

FIRST_FACTS: Final[Object] = {
    "text": TEXT,
    "thought": THOUGHT,
    "calls": [(TOOL, ARGUMENTS)],
    "reason": "tool_calls",
    **USED,
}
SECOND_FACTS: Final[Object] = {"text": ANSWER, "thought": None, "calls": [], "reason": "stop", **USED}
