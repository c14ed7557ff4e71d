import pytest

from gatewayd.completions.limits import AnswerSizeError
from gatewayd.dialects.bedrock import reply
from gatewayd.dialects.bedrock.reply import ConverseDecoder, to_completion
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.strict.bedrock import USAGE, events_of

USE = {"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"a": "b"}}}
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm, hm", "signature": "S"}}}
CONTENTS = {
    "text": [{"text": "Hello there"}],
    "thought and calls": [THOUGHT, {"text": "I look"}, USE, USE],
    "nothing": [],
}


def whole(content, reason):
    output = {"message": {"role": "assistant", "content": content}}
    return to_completion({"output": output, "stopReason": reason, "usage": USAGE}, "id", 5, "m")


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_stream_is_the_whole_answer(content):
    decoder = ConverseDecoder("id", 5, "m", include_usage=True)
    gatherer = Gatherer()
    reason = "tool_use" if USE in content else "end_turn"
    for name, body in events_of(content, reason):
        gatherer.feed(decoder.decode({name: body}))
    assert decoder.is_complete
    assert gatherer.completion() == whole(content, reason)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", ("stop", None)),
        ("tool_use", ("tool_calls", None)),
        ("max_tokens", ("length", None)),
        ("model_context_window_exceeded", ("length", "model_context_window_exceeded")),
        ("guardrail_intervened", ("content_filter", "guardrail_intervened")),
        ("malformed_tool_use", ("stop", "malformed_tool_use")),
    ],
)
def test_reasons(reason, expected):
    choice = whole([], reason)["choices"][0]
    assert (choice["finish_reason"], choice.get("native_finish_reason")) == expected


def test_redacted_thoughts_and_calls_without_arguments():
    decoder = ConverseDecoder("id", 5, "m", include_usage=False)
    redacted = {"reasoningContent": {"redactedContent": b"\x00\x00"}}
    start = {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "t", "name": "now"}}}
    events = [
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": redacted}},
        {"contentBlockStart": start},
        {"contentBlockStop": {"contentBlockIndex": 1}},
        {"metadata": {"usage": USAGE}},
        {"future": {}},
    ]
    deltas = [chunk["choices"][0]["delta"] for event in events for chunk in decoder.decode(event)]
    block = {"type": "redacted_thinking", "data": "AAA="}
    assert deltas[0] == {"thinking_blocks": [block]}
    assert deltas[-1] == {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
    assert whole([redacted], "end_turn")["choices"][0]["message"]["thinking_blocks"] == [block]


def test_an_endless_stream_ends(monkeypatch):
    monkeypatch.setattr(reply, "MAX_STREAM_BYTES", 1000)
    decoder = ConverseDecoder("id", 5, "m", include_usage=False)
    with pytest.raises(AnswerSizeError, match="over 1000 bytes"):
        for _ in range(100):
            decoder.decode({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "x" * 10}}})
