"""The table of the fields of Responses requests in gatewayd-dialects(7) says what happens."""

import re
from pathlib import Path
from typing import Any

from gatewayd.completions.records import Body
from gatewayd.dialects.responses.request import parse_request
from gatewayd.errors import GatewayError

PAGE = (Path(__file__).parents[4] / "man" / "gatewayd-dialects.7").read_text()

FUNCTION: Body = {"type": "function", "name": "f"}
SCHEMA: Body = {"type": "json_schema", "name": "n", "schema": {}}

SAMPLES: dict[str, Body] = {
    "instructions": {"instructions": "be"},
    "max_output_tokens": {"max_output_tokens": 7},
    "temperature": {"temperature": 0.5},
    "top_p": {"top_p": 0.5},
    "top_k": {"top_k": 5},
    "seed": {"seed": 5},
    "presence_penalty": {"presence_penalty": 0.5},
    "frequency_penalty": {"frequency_penalty": 0.5},
    "top_logprobs": {"top_logprobs": 2},
    "include message.output_text.logprobs": {"include": ["message.output_text.logprobs"]},
    "include reasoning.encrypted_content": {"include": ["reasoning.encrypted_content"]},
    "include, other words": {"include": ["web_search_call.results"]},
    "reasoning.effort": {"reasoning": {"effort": "low"}},
    "reasoning.summary": {"reasoning": {"summary": "auto"}},
    "text.format json_object": {"text": {"format": {"type": "json_object"}}},
    "text.format json_schema": {"text": {"format": SCHEMA}},
    "text.verbosity": {"text": {"verbosity": "low"}},
    "tools of type function": {"tools": [FUNCTION]},
    "tools of type custom": {"tools": [{"type": "custom", "name": "c"}]},
    "tools of type namespace": {"tools": [{"type": "namespace", "name": "n", "tools": [FUNCTION]}]},
    "tools of other types": {"tools": [{"type": "web_search"}]},
    "tool_choice auto, none, required": {"tools": [FUNCTION], "tool_choice": "required"},
    "tool_choice, a function or custom tool": {"tools": [FUNCTION], "tool_choice": FUNCTION},
    "tool_choice allowed_tools": {
        "tools": [FUNCTION],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION]},
    },
    "tool_choice of other types": {"tools": [FUNCTION], "tool_choice": {"type": "file_search"}},
    "parallel_tool_calls false": {"tools": [FUNCTION], "parallel_tool_calls": False},
    "user": {"user": "u"},
    "safety_identifier": {"safety_identifier": "u"},
    "prompt_cache_key": {"prompt_cache_key": "k"},
    "prompt_cache_retention": {"prompt_cache_retention": "24h"},
    "service_tier": {"service_tier": "flex"},
    "metadata": {"metadata": {"a": "b"}},
    "store": {"store": False},
    "previous_response_id": {"previous_response_id": "resp_1"},
    "stream_options": {"stream_options": {"include_obfuscation": False}},
    "truncation disabled": {"truncation": "disabled"},
    "truncation auto": {"truncation": "auto"},
    "max_tool_calls": {"max_tool_calls": 3},
    "context_management": {"context_management": [{"type": "compaction"}]},
    "background": {"background": True},
    "conversation": {"conversation": "conv_1"},
    "prompt": {"prompt": {"id": "p"}},
    "own fields of the gateway": {"tool_ids": ["t"]},
    "any other field": {"odd": 1},
}


def outcome(given: Body) -> str:
    """Return what becomes of a field: as a chat request has it, or what the gateway does itself."""
    base: Body = {"model": "m", "input": "hi"}
    if len(given) > 1:
        # The last field is the one in question.
        base["tools"] = given["tools"]
    try:
        plain, asked = parse_request(base), parse_request({**base, **given})
    except GatewayError:
        return "refused"
    if asked.left_out.sentences():
        return "left out"
    if asked.fields == plain.fields and asked.instructions == plain.instructions:
        return "gateway" if "tool_choice" not in given else "converted"
    name, value = list(given.items())[-1]
    return "same" if asked.fields == {**plain.fields, name: value} else "converted"


def rows() -> list[list[str]]:
    found = re.search(r'(?s)\.\\" begin Responses fields\n(.*?)\.\\" end Responses fields\n', PAGE)
    assert found is not None
    return [line.removeprefix(".It ").split(" Ta ") for line in found[1].splitlines()]


def test_the_table_says_what_becomes_of_each_field() -> None:
    made: list[Any] = [[name, outcome(given)] for name, given in SAMPLES.items()]
    assert rows() == made
