"""Tests for gatewayd.pipeline.media.endpoints."""

from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.pipeline.media.endpoints import (
    IMAGE_GENERATION,
    MODERATION,
    RERANK,
    SPEECH,
    TRANSCRIPTION,
    MediaEndpoint,
)

PICTURE = {"type": "image_url", "image_url": {"url": "data:,"}}
CASES: list[tuple[MediaEndpoint, dict[str, Any], list[str]]] = [
    (IMAGE_GENERATION, {"prompt": "a cat", "n": 2}, ["a cat"]),
    (SPEECH, {"instructions": "softly", "input": "hello"}, ["hello", "softly"]),
    (TRANSCRIPTION, {"language": "en"}, []),
    (MODERATION, {"input": "a"}, ["a"]),
    (MODERATION, {"input": ["a", "b"]}, ["a", "b"]),
    (
        MODERATION,
        {"input": [{"type": "text", "text": "a"}, PICTURE, {"type": "text", "text": "b"}]},
        ["a", "b"],
    ),
    (RERANK, {"query": "q", "documents": ["a", {"text": "b", "id": 1}]}, ["q", "a", "b"]),
]


@pytest.mark.parametrize(("endpoint", "body", "texts"), CASES)
def test_texts_go_to_filters_and_back(
    endpoint: MediaEndpoint, body: dict[str, Any], texts: list[str]
) -> None:
    messages = endpoint.to_messages(body)
    assert [message["content"] for message in messages] == texts
    assert endpoint.from_messages(body, messages) == body
    changed = [{**message, "content": message["content"].upper()} for message in messages]
    written = endpoint.from_messages(body, changed)
    assert [message["content"] for message in endpoint.to_messages(written)] == [
        text.upper() for text in texts
    ]
    assert written.keys() == body.keys()


def test_a_filter_may_not_add_messages() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    with pytest.raises(GatewayError, match="added or removed messages"):
        IMAGE_GENERATION.from_messages({"prompt": "a"}, messages)
    with pytest.raises(GatewayError, match="added or removed messages"):
        IMAGE_GENERATION.from_messages({"prompt": "a"}, [{"role": "system", "content": "b"}])


@pytest.mark.parametrize("value", [5, {"a": 1}, [[1, 2]], [None]])
def test_filters_refuse_what_they_cannot_read(value: Any) -> None:
    with pytest.raises(GatewayError, match="filters apply") as refused:
        MODERATION.to_messages({"input": value})
    assert refused.value.param == "input"


def test_records_change_their_own_parameters_only() -> None:
    params = {"size": "1x1", "temperature": 0.5, "n": 3}
    assert IMAGE_GENERATION.with_params({"prompt": "a", "n": 1}, params) == {
        "prompt": "a",
        "size": "1x1",
        "n": 3,
    }
    with pytest.raises(GatewayError, match="system prompt"):
        SPEECH.with_system({"input": "a"}, "prompt")
