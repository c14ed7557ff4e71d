"""Tests for gatewayd.dialects.anthropic.events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions.limits import MAX_TOOL_CALLS, AnswerSizeError
from gatewayd.dialects.anthropic.events import EventDecoder

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
        delta(0, type="thinking_delta", thinking="h"),
        delta(0, type="thinking_delta", thinking="m"),
        delta(0, type="signature_delta", signature="s"),
        stop(0),
        block(1, type="redacted_thinking", data="x"),
        stop(1),
        block(2, type="text", text="first"),
        delta(2, type="text_delta", text="a"),
        stop(2),
        end("max_tokens", output_tokens=5, input_tokens=None),
    )
    usage = chunks.pop()
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "h"},
        {"reasoning_content": "m"},
        {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        {"thinking_blocks": [{"type": "redacted_thinking", "data": "x"}]},
        {"content": "first"},
        {"content": "a"},
        {},
    ]
    assert {(c["id"], c["model"], c["created"], c["object"]) for c in chunks} == {
        ("msg_1", "m", 7, "chat.completion.chunk")
    }
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None] * 7 + ["length"]
    assert usage["choices"] == []
    assert (usage["usage"]["prompt_tokens"], usage["usage"]["completion_tokens"]) == (7, 5)
    assert decoder.is_complete
    assert not decoder.is_done
    assert run(decoder, {"type": "message_stop"}) == []
    assert decoder.is_done


def test_usage_of_the_end_replaces_that_of_the_start():
    decoder = EventDecoder(7, include_usage=True)
    run(decoder, START)
    *_, usage = run(decoder, end("end_turn", input_tokens=9, cache_read_input_tokens=0, output_tokens=5))
    assert (usage["usage"]["prompt_tokens"], usage["usage"]["completion_tokens"]) == (9, 5)
    (later,) = run(decoder, {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 6}})
    assert later["usage"]["completion_tokens"] == 6


def test_no_usage_unless_asked_for():
    decoder = EventDecoder(7, include_usage=False)
    chunks = run(decoder, START, end("end_turn", output_tokens=5), {"type": "message_stop"})
    assert not any("usage" in chunk for chunk in chunks)


@pytest.mark.parametrize(
    ("reason", "sequence", "expected"),
    [
        ("stop_sequence", "END", {"finish_reason": "stop", "matched_stop": "END"}),
        ("pause_turn", None, {"finish_reason": "length", "native_finish_reason": "pause_turn"}),
        ("refusal", None, {"finish_reason": "content_filter", "native_finish_reason": "refusal"}),
    ],
)
def test_why_it_ended(reason, sequence, expected):
    decoder = EventDecoder(7, include_usage=False)
    event = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": sequence}}
    (last,) = run(decoder, event)
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, **expected}]


def test_server_tools_and_citations_are_kept():
    decoder = EventDecoder(7, include_usage=False)
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]}
    page = {"type": "web_search_result_location", "url": "https://acme.test/", "title": "A"}
    chunks = run(
        decoder,
        START,
        block(0, type="server_tool_use", id="s1", name="web_search", input={}),
        delta(0, type="input_json_delta", partial_json='{"query":'),
        delta(0, type="input_json_delta", partial_json='"a"}'),
        stop(0),
        block(1, **result),
        stop(1),
        block(2, type="text", text=""),
        delta(2, type="text_delta", text="see "),
        stop(2),
        block(3, type="text", text=""),
        delta(3, type="citations_delta", citation=page),
        delta(3, type="text_delta", text="there"),
        stop(3),
        end("end_turn"),
    )
    place = {"start_index": 4, "end_index": 9}
    cited = {"type": "url_citation", "url_citation": {"url": "https://acme.test/", "title": "A", **place}}
    assert deltas(chunks)[1:-1] == [
        {
            "server_tool_blocks": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "a"}}
            ]
        },
        {"server_tool_blocks": [result]},
        {"content": "see "},
        {"content": "there"},
        {"citations": [page], "annotations": [cited]},
    ]


def test_input_that_holds_too_much_stays_a_text():
    given = '{"a":[' + "[]," * 250_000 + "[]]}"
    chunks = run(
        EventDecoder(7, include_usage=False),
        block(0, type="server_tool_use", id="s1", name="g", input={}),
        delta(0, type="input_json_delta", partial_json=given),
        end("end_turn"),
    )
    (server,) = [told for told in deltas(chunks) if "server_tool_blocks" in told]
    assert server["server_tool_blocks"][0]["input"] == given


def test_blocks_that_are_not_closed_are_closed_by_the_end():
    decoder = EventDecoder(7, include_usage=False)
    chunks = run(
        decoder,
        block(0, type="thinking", thinking="hm"),
        delta(0, type="signature_delta", signature="s"),
        block(1, type="tool_use", id="t1", name="f", input={}),
        block(2, type="server_tool_use", id="s1", name="g", input={}),
        delta(2, type="input_json_delta", partial_json="{cut"),
        end("tool_use"),
    )
    thought, call, server, last = deltas(chunks)[2:]
    assert thought["thinking_blocks"][0]["signature"] == "s"
    assert call["tool_calls"] == [{"index": 0, "function": {"arguments": "{}"}}]
    assert server["server_tool_blocks"][0]["input"] == "{cut"
    assert last == {}


@given(st.data())
def test_a_signed_thought_comes_back_as_it_was(data):
    """However a thought and its signature are cut, what the caller may send back is the provider's block."""
    thought, signature = data.draw(st.text(min_size=1)), data.draw(st.text(min_size=1))
    events = [block(0, type="thinking", thinking="", signature="")]
    for name, kind, whole in (
        ("thinking", "thinking_delta", thought),
        ("signature", "signature_delta", signature),
    ):
        cuts = sorted(data.draw(st.sets(st.integers(1, len(whole)), max_size=4)) | {len(whole)})
        events += [delta(0, type=kind, **{name: whole[a:b]}) for a, b in zip([0, *cuts], cuts, strict=False)]
    chunks = run(EventDecoder(7, include_usage=False), *events, stop(0))
    given_back = [item for d in deltas(chunks) for item in d.get("thinking_blocks", ())]
    assert given_back == [{"type": "thinking", "thinking": thought, "signature": signature}]
    assert "".join(d.get("reasoning_content", "") for d in deltas(chunks)) == thought


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
    assert run(decoder, *odd, stop(9)) == []
    assert not decoder.is_complete


def test_too_many_tool_calls():
    decoder = EventDecoder(1, include_usage=False)
    with pytest.raises(AnswerSizeError, match="tool calls"):
        for index in range(MAX_TOOL_CALLS + 1):
            decoder.decode(block(index, type="tool_use", id=f"t{index}", name="f", input={}))


def test_a_signature_in_small_pieces_costs_no_more_each():
    # In quadratic time this takes long.
    decoder = EventDecoder(1, include_usage=False)
    run(decoder, block(0, type="thinking", thinking="hm"))
    for _ in range(100_000):
        decoder.decode(delta(0, type="signature_delta", signature="abcdefgh"))
    (last,) = decoder.decode(stop(0))
    assert last["choices"][0]["delta"]["thinking_blocks"][0]["signature"] == "abcdefgh" * 100_000
