from gatewayd.upstream.whole import as_chunk
from tests.fakes.upstream import openai_completion


def test_messages_become_deltas():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chunk = as_chunk({**openai_completion("hi", tool_calls=[call]), "event": {"type": "execute"}})
    (event,) = chunk.events
    assert event["object"] == "chat.completion.chunk"
    assert "event" not in event
    assert event["usage"]["total_tokens"] == 5
    (choice,) = event["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["delta"] == {"role": "assistant", "content": "hi", "tool_calls": [{"index": 0, **call}]}
    assert "message" not in choice
