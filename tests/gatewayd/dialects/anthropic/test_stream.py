"""Playbooks for gatewayd.dialects.anthropic.stream: chunks in, exact events out."""

import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions.reasoning_marks import mark_of
from gatewayd.dialects.anthropic.dialect import render_completion
from gatewayd.upstream.streams.chunks import completion_chunk
from gatewayd.upstream.streams.sse import ChunkReader
from tests.fakes.providers.completion_assembler import Gatherer
from tests.gatewayd.dialects.message_events import (
    CALL,
    USAGE,
    Event,
    accumulate,
    check_grammar,
    chunk,
    decode,
    ending,
    new_ids,
    piece,
    run,
    stream,
    told,
)


def test_text_byte_for_byte():
    made = stream()
    assert made.feed([chunk(role="assistant", content="")]) == (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_0000","type":"message",'
        b'"role":"assistant","model":"asked","content":[],"stop_reason":null,"stop_sequence":null,'
        b'"usage":{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,'
        b'"output_tokens":0}}}\n\n'
    )
    assert made.feed([chunk(content="Hi")]) == (
        b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"text","text":""}}\n\n'
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":"Hi"}}\n\n'
    )
    assert made.feed([chunk(), chunk(content=""), chunk(content=None), chunk("stop"), USAGE]) == b""
    assert made.finish() == (
        b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
        b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
        b'"stop_sequence":null},"usage":{"input_tokens":11,"cache_creation_input_tokens":0,'
        b'"cache_read_input_tokens":0,"output_tokens":5}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )
    assert made.finish() == b""
    assert made.feed([chunk(content="late")]) == b""
    assert made.ping() == b""


def test_a_ping_follows_the_start():
    made = stream()
    assert [event["type"] for event in decode(made.ping())] == ["message_start", "ping"]
    assert made.ping() == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert b"message_start" not in made.feed([chunk(content="Hi")]) + made.finish()


def test_an_answer_without_a_word_has_no_block():
    assert told(run([chunk(role="assistant", content=""), chunk("stop")])) == []
    check_grammar(run([]))


PLAYBOOKS: dict[str, tuple[list[Event], list[Any], str]] = {
    "text in pieces": ([chunk(content="H"), chunk(content="i"), chunk("stop")], [("text", "Hi")], "end_turn"),
    "thinking, then text, in one delta": (
        [chunk(reasoning_content="hm", content="Hi"), chunk("stop")],
        [("thinking", "hm"), ("text", "Hi")],
        "end_turn",
    ),
    "two fields with the same reasoning": (
        [chunk(reasoning="a", reasoning_content="a"), chunk(reasoning="b", reasoning_content="b")],
        [("thinking", "ab")],
        "end_turn",
    ),
    "reasoning details with a signature": (
        [
            chunk(reasoning="a", reasoning_details=[{"type": "reasoning.text", "text": "a"}]),
            chunk(reasoning_details=[{"type": "reasoning.text", "text": "", "signature": "s"}]),
            chunk(content="Hi"),
        ],
        [("thinking", "a"), ("text", "Hi")],
        "end_turn",
    ),
    "thinking field, parts of a content list": (
        [
            chunk(thinking="a"),
            chunk(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "b"}]}]),
            chunk(content=[{"type": "text", "text": "Hi"}]),
        ],
        [("thinking", "ab"), ("text", "Hi")],
        "end_turn",
    ),
    "thinking blocks in pieces, signature at the end": (
        [
            chunk(reasoning_content="a", thinking_blocks=[{"type": "thinking", "thinking": "a"}]),
            chunk(reasoning_content="b", thinking_blocks=[{"type": "thinking", "thinking": "b"}]),
            chunk(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "s"}]),
            chunk(thinking_blocks=[{"type": "redacted_thinking", "data": "x"}]),
            chunk(content="Hi"),
        ],
        [("thinking", "ab", "s"), ("redacted_thinking", "x"), ("text", "Hi")],
        "end_turn",
    ),
    "a whole signed block after its text": (
        [
            chunk(reasoning_content="a"),
            chunk(reasoning_content="b"),
            chunk(thinking_blocks=[{"type": "thinking", "thinking": "ab", "signature": "s"}]),
            chunk(reasoning_content="c"),
            chunk(thinking_blocks=[{"type": "thinking", "thinking": "c", "signature": "t"}]),
        ],
        [("thinking", "ab", "s"), ("thinking", "c", "t")],
        "end_turn",
    ),
    "thinking without text but with a signature": (
        [chunk(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "s"}]), chunk(content="a")],
        [("thinking", "", "s"), ("text", "a")],
        "end_turn",
    ),
    "refusal": ([chunk(refusal="No"), chunk(refusal="pe"), chunk("stop")], [("text", "Nope")], "end_turn"),
    "a tool call in pieces": (
        [
            piece(0, "c1", name="f", arguments=""),
            piece(0, arguments='{"a"'),
            piece(0, arguments=": 1}"),
            chunk("tool_calls"),
        ],
        [("tool_use", "c1", "f", '{"a": 1}')],
        "tool_use",
    ),
    "stop with a call": (
        [chunk(tool_calls=[CALL]), chunk("stop")],
        [("tool_use", "c1", "f", '{"a": 1}')],
        "tool_use",
    ),
    "length with a call": (
        [piece(0, "c1", name="f", arguments='{"a'), chunk("length")],
        [("tool_use", "c1", "f", '{"a')],
        "max_tokens",
    ),
    "tool_calls without a call": (
        [chunk("tool_calls", content="a", tool_calls=[])],
        [("text", "a")],
        "end_turn",
    ),
    "empty lists and deltas": (
        [chunk(tool_calls=[]), chunk(tool_calls=None, content=None), chunk(content="a"), chunk("stop")],
        [("text", "a")],
        "end_turn",
    ),
    "no arguments at all": ([piece(0, "c1", name="f")], [("tool_use", "c1", "f", "")], "tool_use"),
    "arguments are null": (
        [piece(0, "c1", name="f", arguments="null")],
        [("tool_use", "c1", "f", "")],
        "tool_use",
    ),
    "an empty object": (
        [piece(0, "c1", name="f", arguments="{}")],
        [("tool_use", "c1", "f", "{}")],
        "tool_use",
    ),
    "an empty object before the arguments": (
        [piece(0, "c1", name="f", arguments="{}"), piece(0, arguments='{"a":'), piece(0, arguments="1}")],
        [("tool_use", "c1", "f", '{"a":1}')],
        "tool_use",
    ),
    "everything again at the end": (
        [
            piece(0, "c1", name="f", arguments='{"a":'),
            piece(0, arguments="1}"),
            piece(0, "c1", name="f", arguments='{"a": 1}'),
        ],
        [("tool_use", "c1", "f", '{"a":1}')],
        "tool_use",
    ),
    "arguments only at the end": (
        [
            piece(0, "c1", name="f", arguments=""),
            piece(1, "c2", name="g", arguments=""),
            piece(0, arguments='{"a":1}'),
            piece(1, arguments='{"b":2}'),
        ],
        [("tool_use", "c1", "f", '{"a":1}'), ("tool_use", "c2", "g", '{"b":2}')],
        "tool_use",
    ),
    "arguments before the name": (
        [piece(0, arguments='{"a":'), piece(0, "c1", name="f"), piece(0, arguments="1}")],
        [("tool_use", "c1", "f", '{"a":1}')],
        "tool_use",
    ),
    "arguments as an object": (
        [piece(0, "c1", name="f", arguments={"a": 1})],
        [("tool_use", "c1", "f", '{"a":1}')],
        "tool_use",
    ),
    "arguments that are not JSON": (
        [piece(0, "c1", name="f", arguments="a is "), piece(0, arguments="1")],
        [("tool_use", "c1", "f", "a is 1")],
        "tool_use",
    ),
    "name repeated": (
        [piece(0, "c1", name="f", arguments='{"a":'), piece(0, "c1", name="f", arguments="1}")],
        [("tool_use", "c1", "f", '{"a":1}')],
        "tool_use",
    ),
    "name split": (
        [piece(0, "c1", name="get_"), piece(0, name="it"), piece(0, arguments='{"a":1}')],
        [("tool_use", "c1", "get_it", '{"a":1}')],
        "tool_use",
    ),
    "name growing": (
        [piece(0, "c1", name="get_"), piece(0, name="get_it"), piece(0, arguments='{"a":1}')],
        [("tool_use", "c1", "get_it", '{"a":1}')],
        "tool_use",
    ),
    "index 0 for all, with ids": (
        [
            piece(0, "c1", name="f", arguments='{"a":1}'),
            piece(0, "c2", name="f", arguments='{"a":1}'),
            piece(0, "c3", name="g", arguments=""),
        ],
        [
            ("tool_use", "c1", "f", '{"a":1}'),
            ("tool_use", "c2", "f", '{"a":1}'),
            ("tool_use", "c3", "g", ""),
        ],
        "tool_use",
    ),
    "index 0 for all, pieces by id": (
        [
            piece(0, "c1", name="f", arguments='{"a":'),
            piece(0, "c2", name="f", arguments='{"b":'),
            piece(0, "c1", arguments="1}"),
            piece(0, "c2", arguments="2}"),
        ],
        [("tool_use", "c1", "f", '{"a":1}'), ("tool_use", "c2", "f", '{"b":2}')],
        "tool_use",
    ),
    "index 0 for all, without ids": (
        [piece(0, "", name="f", arguments='{"a":1}'), piece(0, "", name="f", arguments='{"a":2}')],
        [("tool_use", "toolu_0001", "f", '{"a":1}'), ("tool_use", "toolu_0002", "f", '{"a":2}')],
        "tool_use",
    ),
    "a new id for each piece": (
        [piece(0, "r1", name="f", arguments='{"a":'), piece(0, "r2", arguments="1}")],
        [("tool_use", "r1", "f", '{"a":1}')],
        "tool_use",
    ),
    "by id without index": (
        [
            piece(None, "c1", name="f", arguments=""),
            piece(None, "c2", name="g", arguments=""),
            piece(None, "c1", arguments='{"a":1}'),
            piece(None, "c2", arguments='{"b":2}'),
        ],
        [("tool_use", "c1", "f", '{"a":1}'), ("tool_use", "c2", "g", '{"b":2}')],
        "tool_use",
    ),
    "neither id nor index": (
        [
            piece(None, name="f", arguments='{"a":'),
            piece(None, arguments="1}"),
            piece(None, name="g", arguments='{"b":2}'),
        ],
        [("tool_use", "toolu_0001", "f", '{"a":1}'), ("tool_use", "toolu_0002", "g", '{"b":2}')],
        "tool_use",
    ),
    "an id used twice": (
        [piece(0, "same", name="f", arguments='{"a":1}'), piece(1, "same", name="g", arguments='{"b":2}')],
        [("tool_use", "same", "f", '{"a":1}'), ("tool_use", "toolu_0001", "g", '{"b":2}')],
        "tool_use",
    ),
    "interleaved": (
        [
            piece(0, "c1", name="f", arguments='{"a":'),
            piece(1, "c2", name="g", arguments='{"b":'),
            piece(0, arguments='"}"'),
            piece(1, arguments="2"),
            piece(0, arguments="}"),
            piece(1, arguments="}"),
        ],
        [("tool_use", "c1", "f", '{"a":"}"}'), ("tool_use", "c2", "g", '{"b":2}')],
        "tool_use",
    ),
    "text before and after a call": (
        [chunk(content="a"), chunk(tool_calls=[CALL]), chunk(content="b"), chunk(content="c"), chunk("stop")],
        [("text", "a"), ("tool_use", "c1", "f", '{"a": 1}'), ("text", "bc")],
        "tool_use",
    ),
    "text within a call": (
        [
            piece(0, "c1", name="f", arguments='{"a":'),
            chunk(content="b"),
            piece(0, arguments="1}"),
            chunk(content="c"),
        ],
        [("tool_use", "c1", "f", '{"a":1}'), ("text", "bc")],
        "tool_use",
    ),
    "the older function_call": (
        [
            chunk(function_call={"name": "f", "arguments": ""}),
            chunk(function_call={"arguments": '{"a":1}'}),
            chunk("function_call"),
        ],
        [("tool_use", "toolu_0001", "f", '{"a":1}')],
        "tool_use",
    ),
    "a call of which only an id came": ([piece(0, "c1"), chunk("stop")], [], "end_turn"),
    "content after the finish reason": (
        [chunk(content="a"), chunk("stop"), chunk(content="b")],
        [("text", "ab")],
        "end_turn",
    ),
    "other choices": (
        [
            {"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]},
            chunk(content="yes"),
        ],
        [("text", "yes")],
        "end_turn",
    ),
    "what is not a chunk": (
        [
            {"sources": [{"document": ["d"]}]},
            {"choices": [], "sources": []},
            {"choices": None},
            {"choices": ["x", {"index": 0, "delta": None}, {"delta": {"tool_calls": [None, 5, {}]}}]},
            chunk(content="a"),
        ],
        [("text", "a")],
        "end_turn",
    ),
    "length": ([chunk("length", content="a")], [("text", "a")], "max_tokens"),
    "content filter": ([chunk("content_filter", content="a")], [("text", "a")], "refusal"),
    "unknown reason": ([chunk("eos", content="a")], [("text", "a")], "end_turn"),
}


@pytest.mark.parametrize("name", PLAYBOOKS)
def test_playbook(name):
    events, blocks, reason = PLAYBOOKS[name]
    data = run(events)
    check_grammar(data)
    assert told(data) == blocks
    assert ending(data)["delta"] == {"stop_reason": reason, "stop_sequence": None}


def test_a_parallel_call_is_told_as_soon_as_the_one_before_is_whole():
    made = stream()
    made.feed([piece(0, "c1", name="f", arguments='{"a":'), piece(1, "c2", name="g", arguments='{"b":')])
    now = made.feed([piece(0, arguments="1}")])
    assert [event["type"] for event in decode(now)] == [
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
    ]


@pytest.mark.parametrize(
    ("fields", "known", "expected"),
    [
        ({"stop_reason": "END"}, None, ("stop_sequence", "END")),
        ({"matched_stop": "END"}, None, ("stop_sequence", "END")),
        ({"matched_stop": "END"}, ["END"], ("stop_sequence", "END")),
        ({"matched_stop": "</s>"}, ["END"], ("end_turn", None)),
        ({"stop_reason": 128_001}, None, ("end_turn", None)),
        ({"stop_reason": "stop"}, None, ("end_turn", None)),
        ({"stop_reason": None}, None, ("end_turn", None)),
        ({"finish_reason": "length", "native_finish_reason": "model_context_window_exceeded"}, None, None),
    ],
)
def test_stop_sequences(fields, known, expected):
    event = chunk("stop", content="a")
    event["choices"][0].update(fields)
    delta = ending(run([event], stop_sequences=known))["delta"]
    reason, sequence = expected or ("model_context_window_exceeded", None)
    assert delta == {"stop_reason": reason, "stop_sequence": sequence}


def test_usage_is_the_last_one_that_counts():
    usages = [
        {"prompt_tokens": 9, "completion_tokens": 1},
        {"prompt_tokens": 9, "completion_tokens": 4},
        None,
    ]
    events = [{**chunk(content="a"), "usage": usage} for usage in usages]
    events.append({"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})
    usage = ending(run(events))["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (9, 4)


def test_usage_is_estimated_where_nobody_counted():
    usage = ending(run([chunk(content="a" * 40)]))["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (7, 10)


def test_an_id_of_the_protocol_is_kept():
    assert decode(run([{**chunk(content="a"), "id": "msg_1"}]))[0]["message"]["id"] == "msg_1"


@pytest.mark.parametrize("name", [name for name in PLAYBOOKS if "not JSON" not in name])
def test_the_official_client_reads_it_as_the_whole_answer(name):
    events = [*PLAYBOOKS[name][0], USAGE]
    data = run(events, mark=MARK)
    whole = accumulate(data)
    assert {"type", "role", "usage"} <= whole.keys()
    if name in DIFFERENT:
        return
    gathered = Gatherer(lambda: "x")
    gathered.feed(events)
    completion = gathered.completion()
    for call in completion["choices"][0]["message"].get("tool_calls") or ():
        if call["id"] == "call_x":
            call["id"] = ""
    expected = render_completion(completion, "asked", new_ids(), mark=MARK)
    assert whole["content"] == expected["content"]
    assert (whole["stop_reason"], whole["usage"]) == (expected["stop_reason"], expected["usage"])


MARK = mark_of("deepseek")

DIFFERENT = {
    # A whole answer has one text, before the calls, and a cut call cannot be an object.
    "text before and after a call",
    "text within a call",
    "length with a call",
    # These are gathered otherwise: without signatures, or with each half of a call's pieces apart.
    "reasoning details with a signature",
    "thinking blocks in pieces, signature at the end",
    "a whole signed block after its text",
    "index 0 for all, pieces by id",
    "by id without index",
}

WHOLE = {
    "id": "chatcmpl-1",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Hi",
                "reasoning_content": "ab",
                "thinking_blocks": [
                    {"type": "thinking", "thinking": "ab", "signature": "s"},
                    {"type": "redacted_thinking", "data": "x"},
                ],
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}},
                    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}},
                    {"id": "c3", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}},
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {
        "prompt_tokens": 30,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 4},
    },
}


def test_a_whole_answer_as_stream_and_as_message_are_equal():
    data = run(completion_chunk(WHOLE).events, mark=MARK)
    check_grammar(data)
    expected = render_completion(WHOLE, "asked", new_ids(), mark=MARK)
    assert accumulate(data) == {**expected, "stop_details": None}
    assert [block["type"] for block in expected["content"]] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
        "tool_use",
        "tool_use",
    ]


def test_no_signature_is_invented():
    """Thinking without a signature ends with the mark, or has no signature at all."""
    unsigned = [chunk(reasoning_content="hm"), chunk(content="a"), chunk("stop")]
    assert b"signature" not in run(unsigned)
    starts = [
        event["content_block"] for event in decode(run(unsigned, mark=MARK)) if "content_block" in event
    ]
    assert starts[0] == {"type": "thinking", "thinking": "", "signature": MARK}
    assert told(run(unsigned, mark=MARK))[0] == ("thinking", "hm", MARK)
    signed = [
        chunk(thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "s"}]),
        chunk("stop"),
    ]
    assert told(run(signed, mark=MARK))[0] == ("thinking", "hm", "s")


@st.composite
def grouped(draw):
    """Return events, and the same in groups."""
    names = draw(st.lists(st.sampled_from(sorted(PLAYBOOKS)), min_size=1, max_size=3))
    events = [event for name in names for event in PLAYBOOKS[name][0]]
    cuts = draw(st.lists(st.integers(0, len(events)), max_size=6).map(sorted))
    return events, [events[a:b] for a, b in itertools.pairwise([0, *cuts, len(events)])]


@given(grouped())
def test_grouping_changes_no_byte(case):
    events, groups = case
    made = stream()
    assert b"".join(made.feed(group) for group in groups) + made.finish() == run(events)


@given(st.sampled_from(sorted(PLAYBOOKS)), st.data())
def test_splitting_the_providers_bytes_changes_no_byte(name, data):
    frames = [orjson.dumps(event) for event in PLAYBOOKS[name][0] if isinstance(event.get("choices"), list)]
    ends = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    sent = b"".join(b"data: " + frame + ends * 2 for frame in frames) + b"data: [DONE]" + ends * 2
    cuts = data.draw(st.lists(st.integers(0, len(sent)), max_size=8).map(sorted))
    reader, made, out = ChunkReader(), stream(), b""
    reads = [sent[a:b] for a, b in itertools.pairwise([0, *cuts, len(sent)])]
    for read in [reader.feed(read) for read in reads] + [reader.finish()]:
        out += made.feed(read.events) if read is not None else b""
    assert out + made.finish() == run([orjson.loads(frame) for frame in frames])


words = st.sampled_from(["", "a", "b{", '"}', "ü"])
maybe = st.one_of(st.none(), words)
functions = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["", "f", "g", None, 5]),
        "arguments": st.sampled_from(["", "{}", '{"a":1}', '{"a":', "1}", "null", "x", {"b": 2}, None, [1]]),
    },
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, 2, None, "0"]),
        "id": st.sampled_from(["", "c1", "c2", None, 7]),
        "function": functions,
    },
)
thinkings = st.fixed_dictionaries(
    {"type": st.sampled_from(["thinking", "redacted_thinking", "other"])},
    optional={"thinking": maybe, "signature": maybe, "data": maybe},
)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "content": maybe,
        "reasoning_content": maybe,
        "reasoning": maybe,
        "refusal": maybe,
        "thinking_blocks": st.lists(thinkings, max_size=2),
        "tool_calls": st.lists(entries, max_size=3),
        "function_call": functions,
    },
)
finishes = st.sampled_from([None, None, None, "stop", "length", "tool_calls", "odd", 5])


@given(st.lists(st.builds(lambda delta, finish: chunk(finish, **delta), deltas, finishes), max_size=12))
def test_every_stream_obeys_the_grammar_and_loses_no_text(events):
    data = run(events)
    check_grammar(data)
    texts = [
        (delta.get("content") or "") + (delta.get("refusal") or "")
        for delta in (event["choices"][0]["delta"] for event in events)
    ]
    assert "".join(block[1] for block in told(data) if block[0] == "text") == "".join(texts)
    ids = [block[1] for block in told(data) if block[0] == "tool_use"]
    assert len(ids) == len(set(ids))
    assert all(block[1] or len(block) > 2 for block in told(data) if block[0] in ("text", "thinking"))


@pytest.mark.parametrize("begin", [lambda made: made.ping(), lambda made: made.feed([chunk(content="a")])])
def test_sources_stand_in_the_message_that_starts(begin):
    sources = [{"source": {"id": "f1"}, "document": ["words"], "metadata": [{}]}]
    made = stream(sources=sources)
    events = decode(begin(made) + made.finish())
    assert events[0]["message"]["sources"] == sources
    assert "sources" not in str(events[1:])
