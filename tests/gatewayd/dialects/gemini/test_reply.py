import orjson
import pytest

from gatewayd.dialects.gemini.reply import AnswerDecoder, to_completion
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.strict.gemini import answer, stream_of

CALL = {"functionCall": {"name": "weather", "args": {"a": "b"}, "id": "c1"}}
IMAGE = {"inlineData": {"mimeType": "image/png", "data": "AA"}}
PARTS = {
    "text": [{"text": "Hello there"}],
    "signed text": [{"text": "Hello"}, {"text": "", "thoughtSignature": "S"}],
    "thought and calls": [{"text": "Hm, hm", "thought": True}, {**CALL, "thoughtSignature": "S"}, CALL],
    "picture": [{"text": "Here"}, IMAGE],
    "nothing": [],
}


def decoder():
    return AnswerDecoder(5, lambda: "new", include_usage=True)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_a_stream_is_the_whole_answer(parts):
    made = decoder()
    gatherer = Gatherer(lambda: "new")
    for write in stream_of(parts):
        gatherer.feed(made.decode(orjson.loads(write.removeprefix(b"data: "))))
    assert made.is_complete
    assert gatherer.completion() == to_completion(answer(parts, "STOP"), 5, lambda: "new")


@pytest.mark.parametrize(
    ("reason", "parts", "expected"),
    [
        ("STOP", "text", ("stop", None)),
        ("STOP", "thought and calls", ("tool_calls", None)),
        ("MAX_TOKENS", "thought and calls", ("length", None)),
        ("SAFETY", "nothing", ("content_filter", "SAFETY")),
        ("PROHIBITED_CONTENT", "nothing", ("content_filter", "PROHIBITED_CONTENT")),
        ("MALFORMED_FUNCTION_CALL", "nothing", ("stop", "MALFORMED_FUNCTION_CALL")),
    ],
)
def test_reasons(reason, parts, expected):
    choice = to_completion(answer(PARTS[parts], reason), 5, lambda: "new")["choices"][0]
    assert (choice["finish_reason"], choice.get("native_finish_reason")) == expected


def test_signatures_and_ids():
    message = to_completion(answer(PARTS["thought and calls"], "STOP"), 5, lambda: "new")["choices"][0][
        "message"
    ]
    signed, other = message["tool_calls"]
    assert signed["extra_content"] == {"google": {"thought_signature": "S"}}
    assert (signed["id"], "extra_content" in other) == ("c1", False)
    unnamed = {"functionCall": {"name": "now"}}
    call = to_completion(answer([unnamed], "STOP"), 5, lambda: "new")["choices"][0]["message"]["tool_calls"][
        0
    ]
    assert (call["id"], call["function"]["arguments"]) == ("call_new", "{}")


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "content_policy_violation"),
        ({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}, 503),
    ],
)
def test_failures(event, code):
    made = decoder()
    assert made.decode(event) == []
    assert made.error["code"] == code
    assert not made.is_complete


def test_odd_objects():
    made = decoder()
    odd = [
        {},
        {"candidates": 5},
        {"candidates": [5]},
        {"candidates": [{"content": {"parts": [5, {"text": 7}]}}]},
    ]
    chunks = [chunk for event in odd for chunk in made.decode(event)]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [{"role": "assistant", "content": ""}]
