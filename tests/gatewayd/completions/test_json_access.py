"""Tests for gatewayd.completions.json_access, and of the dialects that read providers and callers with it."""

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.completions.json_access import MAX_COUNT, as_count, as_mapping, as_sequence, as_text
from gatewayd.dialects.anthropic import completion as anthropic_completion
from gatewayd.dialects.anthropic import source as anthropic_source
from gatewayd.dialects.anthropic.events import EventDecoder
from gatewayd.dialects.ollama import source as ollama_source
from gatewayd.errors import ErrorKind, GatewayError

WORDS = (
    "messages", "role", "content", "type", "text", "user", "assistant", "tool", "system", "tool_calls", "id",
    "function", "name", "arguments", "tool_call_id", "image_url", "url", "thinking", "thinking_blocks",
    "tool_use", "input", "usage", "input_tokens", "output_tokens", "message", "delta", "index", "stop_reason",
    "content_block", "content_block_start", "content_block_delta", "content_block_stop", "message_start",
    "message_delta", "message_stop", "text_delta", "thinking_delta", "input_json_delta", "partial_json",
    "error", "done", "done_reason", "prompt_eval_count", "eval_count", "tools", "parameters", "file",
    "file_data", "refusal", "reasoning_effort", "response_format", "json_schema", "schema", "stop", "options",
    "tool_choice", "think", "high", "cache_control", "n", "data:;base64,",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(WORDS),
)
KEYS = st.sampled_from(WORDS)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=6)
ROLES = st.sampled_from(["user", "assistant", "tool", "system", "developer"])
PARTS = st.lists(
    OBJECTS | st.fixed_dictionaries({"type": KEYS}, optional={"text": JSON, "image_url": JSON, "file": JSON})
)
CALLS = st.lists(st.fixed_dictionaries({"function": OBJECTS}, optional={"id": JSON}), max_size=2)
MESSAGES = st.fixed_dictionaries(
    {"role": ROLES},
    optional={"content": PARTS | JSON, "tool_calls": CALLS | JSON, "tool_call_id": JSON},
)
REQUESTS = st.builds(
    lambda body, messages: {**body, "messages": messages}, OBJECTS, st.lists(MESSAGES, max_size=3)
)
TYPES = st.sampled_from([word for word in WORDS if "_" in word])
KINDS = st.sampled_from(
    [
        *("text", "tool_use", "thinking", "redacted_thinking", "server_tool_use"),
        *("text_delta", "thinking_delta", "input_json_delta", "signature_delta", "citations_delta"),
    ]
)
FIELDS = ("text", "thinking", "input", "id", "name", "partial_json", "signature", "citation", "citations")
BLOCKS = st.fixed_dictionaries({"type": KINDS}, optional=dict.fromkeys(FIELDS, JSON))
EVENTS = st.fixed_dictionaries(
    {"type": TYPES},
    optional={"index": JSON, "content_block": BLOCKS, "delta": BLOCKS | JSON, "usage": OBJECTS},
)


@pytest.mark.parametrize("value", [None, True, 1.5, -1, MAX_COUNT, 10**30, "5", [5], {}])
def test_what_is_no_count_is_none(value: object) -> None:
    assert as_count(value) == 0


def test_what_is_as_expected_is_kept() -> None:
    assert (as_count(5), as_count(MAX_COUNT - 1)) == (5, MAX_COUNT - 1)
    assert (as_text("a"), as_text(["a"])) == ("a", "")
    assert (as_mapping({"a": 1}), as_mapping([1])) == ({"a": 1}, {})
    assert (as_sequence([1]), as_sequence("ab"), as_sequence({"a": 1})) == ([1], (), ())


@settings(max_examples=300, deadline=None)
@given(REQUESTS | OBJECTS)
def test_any_request_is_converted_or_refused(body: dict[str, object]) -> None:
    refusals: list[GatewayError] = []
    for convert in (anthropic_source.to_request, lambda body: ollama_source.to_request(body, stream=True)):
        try:
            orjson.dumps(convert(body))
        except GatewayError as error:
            refusals.append(error)
    assert all(error.kind is ErrorKind.INVALID_REQUEST and error.param for error in refusals)


@settings(max_examples=300, deadline=None)
@given(
    st.fixed_dictionaries(
        {}, optional={"content": st.lists(BLOCKS) | JSON, "usage": OBJECTS, "message": OBJECTS}
    )
    | OBJECTS
)
def test_any_answer_is_converted(answer: dict[str, object]) -> None:
    orjson.dumps(anthropic_completion.to_completion(answer, 1))
    orjson.dumps(ollama_source.to_completion(answer, 1, lambda: "i"))


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS | OBJECTS, max_size=6))
def test_any_stream_is_converted(events: list[dict[str, object]]) -> None:
    hosted = EventDecoder(1, include_usage=True)
    runtime = ollama_source.ReplyDecoder(1, lambda: "i", include_usage=True)
    for event in events:
        orjson.dumps(hosted.decode(event))
        orjson.dumps(runtime.decode(event))


def test_halves_of_surrogate_pairs_are_no_text() -> None:
    assert as_text("a\ud800b \u00e9") == "a?b \u00e9"
