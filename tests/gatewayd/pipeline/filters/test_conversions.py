"""Tests for gatewayd.pipeline.filters.conversions."""

from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.filters.conversions import EmbeddingInputs, LegacyCompletions, content_text

PROMPTS, INPUTS = LegacyCompletions(), EmbeddingInputs()


def user(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


@pytest.mark.parametrize(
    ("body", "texts"),
    [
        ({"prompt": "a"}, ["a"]),
        ({"prompt": ["a", "b"], "suffix": "z"}, ["z", "a", "b"]),
        ({"prompt": "a", "suffix": ""}, ["a"]),
        ({}, []),
    ],
)
def test_prompts_are_messages_and_come_back(body: dict[str, Any], texts: list[str]) -> None:
    messages = PROMPTS.to_messages(body)
    assert messages == user(*texts)
    assert PROMPTS.from_messages(body, messages) == body
    shouted = PROMPTS.from_messages(body, user(*(text.upper() for text in texts)))
    assert PROMPTS.to_messages(shouted) == user(*(text.upper() for text in texts))
    assert shouted.keys() == body.keys()


def test_inputs_are_messages_and_come_back() -> None:
    body = {"input": ["a", "b"], "dimensions": 3}
    assert INPUTS.to_messages(body) == user("a", "b")
    assert INPUTS.from_messages(body, user("x", "y")) == {"input": ["x", "y"], "dimensions": 3}
    assert INPUTS.to_chunk({"data": []}) is None
    assert INPUTS.from_chunk({"data": []}, {}) == [{"data": []}]


@pytest.mark.parametrize("tokens", [[1, 2], [[1], [2]], ["a", [1]], {"a": 1}])
def test_tokens_are_not_shown_as_text(tokens: Any) -> None:
    for refused in (
        lambda: PROMPTS.to_messages({"prompt": tokens}),
        lambda: INPUTS.to_messages({"input": tokens}),
    ):
        with pytest.raises(GatewayError, match="as text, not as tokens") as caught:
            refused()
        assert (caught.value.kind, caught.value.code) == (ErrorKind.INVALID_REQUEST, "not_expressible")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        user("a", "b"),
        [{"role": "system", "content": "be kind"}],
        [{"role": "user", "content": [{"type": "image_url"}]}],
        [{"role": "user", "content": [{"type": "text", "text": 1}]}],
        [{"role": "user", "content": None}],
    ],
)
def test_changes_without_a_place_are_refused(messages: list[dict[str, Any]]) -> None:
    for conversion, body in ((PROMPTS, {"prompt": "a"}), (INPUTS, {"input": ["a"]})):
        with pytest.raises(GatewayError, match=f"cannot use {conversion.path}"):
            conversion.from_messages(body, messages)


def test_parts_of_text_are_joined() -> None:
    assert content_text([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "/x") == "ab"


def test_a_system_prompt_is_refused_and_parameters_win() -> None:
    for conversion in (PROMPTS, INPUTS):
        with pytest.raises(GatewayError, match="its system prompt applies to chats only"):
            conversion.with_system({}, "be kind")
    sent = {"prompt": "a", "temperature": 2, "max_completion_tokens": 9}
    assert PROMPTS.with_params(sent, {"temperature": 0, "max_tokens": 1}) == {
        "prompt": "a",
        "temperature": 0,
        "max_tokens": 1,
    }
    assert sent["temperature"] == 2
    assert INPUTS.with_params({"input": ["a"], "dimensions": 9}, {"dimensions": 2, "top_p": 1}) == {
        "input": ["a"],
        "dimensions": 2,
    }


def test_choices_of_a_stream_are_chunks_and_come_back() -> None:
    event = {"id": "c", "object": "text_completion", "choices": [{"index": 1, "text": "a", "logprobs": None}]}
    shown = PROMPTS.to_chunk(event)
    assert shown == {
        "id": "c",
        "object": "chat.completion.chunk",
        "choices": [{"index": 1, "logprobs": None, "delta": {"content": "a"}}],
    }
    assert PROMPTS.from_chunk(event, shown) == [event]
    assert PROMPTS.to_chunk({"usage": {}, "choices": []}) is None
