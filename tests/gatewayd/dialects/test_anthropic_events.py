from gatewayd.dialects.anthropic_events import EventDecoder

START = {
    "type": "message_start",
    "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 3, "cache_read_input_tokens": 4}},
}


def block(index, **fields):
    return {"type": "content_block_start", "index": index, "content_block": fields}


def delta(index, **fields):
    return {"type": "content_block_delta", "index": index, "delta": fields}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def end(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def run(decoder, *events):
    return [chunk for event in events for chunk in decoder.decode(event)]


def deltas(chunks):
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def test_text_thinking_and_usage():
    decoder = EventDecoder(7, include_usage=True)
    chunks = run(
        decoder,
        START,
        {"type": "ping"},
        block(0, type="thinking", thinking=""),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="signature_delta", signature="s"),
        stop(0),
        block(1, type="text", text="first"),
        delta(1, type="text_delta", text="a"),
        stop(1),
        end("max_tokens", output_tokens=5, input_tokens=None),
    )
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "first"},
        {"content": "a"},
        {},
    ]
    assert {(c["id"], c["model"], c["created"], c["object"]) for c in chunks} == {
        ("msg_1", "m", 7, "chat.completion.chunk")
    }
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None] * 4 + ["length"]
    assert decoder.is_complete
    assert not decoder.is_done
    (last,) = run(decoder, {"type": "message_stop"})
    assert last["choices"] == []
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (7, 5)
    assert decoder.is_done


def test_tool_calls_are_numbered_and_always_have_arguments():
    decoder = EventDecoder(7, include_usage=False)
    chunks = run(
        decoder,
        START,
        block(0, type="text", text=""),
        stop(0),
        block(1, type="tool_use", id="t1", name="f", input={}),
        delta(1, type="input_json_delta", partial_json=""),
        delta(1, type="input_json_delta", partial_json='{"a"'),
        delta(1, type="input_json_delta", partial_json=":1}"),
        stop(1),
        block(2, type="tool_use", id="t2", name="g", input={}),
        stop(2),
        block(3, type="tool_use", id="t3", name="h", input={"b": 2}),
        stop(3),
        end("tool_use"),
        {"type": "message_stop"},
    )
    calls = [call for d in deltas(chunks) for call in d.get("tool_calls", ())]
    assert [(call["index"], call["function"]["arguments"]) for call in calls] == [
        (0, ""),
        (0, '{"a"'),
        (0, ":1}"),
        (1, ""),
        (1, "{}"),
        (2, '{"b":2}'),
    ]
    assert (calls[0]["id"], calls[0]["type"], calls[0]["function"]["name"]) == ("t1", "function", "f")
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_error_event():
    decoder = EventDecoder(7, include_usage=False)
    assert run(decoder, {"type": "error", "error": {"type": "overloaded_error"}}) == []
    assert decoder.error == {"type": "overloaded_error"}
    assert not decoder.is_complete


def test_odd_events_give_nothing():
    decoder = EventDecoder(7, include_usage=False)
    odd = [
        {},
        {"type": "new"},
        delta(9, type="input_json_delta", partial_json="x"),
        delta(0),
        {"type": "message_delta"},
    ]
    assert run(decoder, *odd, stop(9), block(0, type="server_tool_use")) == []
    assert not decoder.is_complete
