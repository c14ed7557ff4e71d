import ollama
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.completions.deltas import UNNAMED_ERROR
from gatewayd.dialects.ollama.dialect import ReplyTiming
from gatewayd.dialects.ollama.stream import ChatLines

TIMING = ReplyTiming(created=1_700_000_009, total_ns=90, first_ns=30)
HEAD = {"model": "m", "created_at": "2023-11-14T22:13:20Z"}
END = {
    "model": "m",
    "created_at": "2023-11-14T22:13:29Z",
    "done": True,
    "done_reason": "stop",
    "total_duration": 90,
    "load_duration": 0,
    "prompt_eval_count": 3,
    "prompt_eval_duration": 30,
    "eval_count": 2,
    "eval_duration": 60,
}
USAGE = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}


def chunk(delta, reason=None, **more):
    return {
        "id": "c",
        "model": "other",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        **more,
    }


def piece(index, arguments=None, **more):
    function = {key: more.pop(key) for key in ("name",) if key in more}
    if arguments is not None:
        function["arguments"] = arguments
    return chunk({"tool_calls": [{"index": index, "function": function, **more}]})


def lines_of(reply, answer=ollama.ChatResponse):
    assert reply == b"" or reply.endswith(b"\n")
    for line in reply.splitlines():
        if b'"error"' not in line:
            answer.model_validate_json(line)
    return [orjson.loads(line) for line in reply.splitlines()]


def new_lines(*, generate=False):
    return ChatLines("m", generate=generate, clock=lambda: 1_700_000_000)


def play(groups, *, generate=False):
    lines = new_lines(generate=generate)
    reply = b"".join(lines.feed(group) for group in groups)
    return lines_of(
        reply + lines.finish(TIMING), ollama.GenerateResponse if generate else ollama.ChatResponse
    )


def message(content, **more):
    return {"message": {"role": "assistant", "content": content, **more}}


TEXT = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning_content": "hm", "reasoning": "hm"}),
    chunk({"content": "he"}),
    chunk({"content": "llo"}),
    chunk({}, "stop"),
    USAGE,
]


def test_chat_stream():
    assert play([TEXT]) == [
        {**HEAD, **message("", thinking="hm"), "done": False},
        {**HEAD, **message("he"), "done": False},
        {**HEAD, **message("llo"), "done": False},
        {**END, **message("")},
    ]


def test_generate_stream():
    assert play([TEXT], generate=True) == [
        {**HEAD, "response": "", "thinking": "hm", "done": False},
        {**HEAD, "response": "he", "done": False},
        {**HEAD, "response": "llo", "done": False},
        {**END, "response": ""},
    ]


def test_lines_come_with_their_events():
    lines = new_lines()
    assert lines.feed([TEXT[0]]) == b""
    assert len(lines_of(lines.feed(TEXT[1:3]))) == 2
    assert lines.feed(TEXT[4:]) == b""


def test_tool_calls_are_sent_whole():
    events = [
        piece(0, "", id="a", name="f", type="function"),
        piece(0, '{"x"'),
        piece(1, id="b", name="g"),
        piece(0, ": 1}"),
        chunk({"content": "calling"}),
        chunk({}, "tool_calls"),
        USAGE,
    ]
    calls = [
        {"id": "a", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}},
        {"id": "b", "function": {"index": 1, "name": "g", "arguments": {}}},
    ]
    assert play([events]) == [
        {**HEAD, **message("calling"), "done": False},
        {**HEAD, "created_at": END["created_at"], **message("", tool_calls=calls), "done": False},
        {**END, **message("")},
    ]


@pytest.mark.parametrize(("reason", "done_reason"), [("length", "length"), ("content_filter", "stop")])
def test_done_reasons(reason, done_reason):
    assert play([[chunk({"content": "a"}, reason)]])[-1]["done_reason"] == done_reason


def test_text_beside_a_finish_reason_is_not_lost():
    (line, end) = play([[chunk({"content": "a", "refusal": None}, "stop", usage={"completion_tokens": 9})]])
    assert line["message"]["content"] == "a"
    assert end["eval_count"] == 9


def test_refusals_are_text():
    assert play([[chunk({"refusal": "no"})]])[0]["message"]["content"] == "no"


def test_logprobs():
    event = chunk({"content": "a"})
    event["choices"][0]["logprobs"] = {"content": [{"token": "a", "logprob": -1.0}]}
    assert play([[event]])[0]["logprobs"] == [{"token": "a", "logprob": -1.0}]


def test_timings_of_an_engine():
    end = play([[chunk({"content": "a"}, "stop", timings={"predicted_ms": 1, "predicted_n": 8})]])[-1]
    assert (end["eval_duration"], end["eval_count"]) == (1_000_000, 8)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        ({"message": "out of memory", "code": 1}, "out of memory"),
        ("broken", "broken"),
        ({"code": 1}, UNNAMED_ERROR),
    ],
)
def test_nothing_follows_an_error(error, sentence):
    lines = new_lines()
    reply = lines.feed([chunk({"content": "a"}), {"error": error}, chunk({"content": "b"})])
    assert [line.get("error") for line in lines_of(reply)] == [None, sentence]
    assert lines.is_failed
    assert lines.feed([chunk({"content": "c"})]) == b""
    assert lines.finish(TIMING) == b""


def test_a_call_without_whole_arguments_ends_in_an_error():
    (line,) = play([[piece(0, '{"x": ', id="a", name="f"), chunk({}, "length")]])
    assert "'f'" in line["error"]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"choices": None},
        {"choices": ["x", {"delta": "y"}, {"index": 1, "delta": {"content": "no"}}]},
        {
            "choices": [{"index": 0, "delta": {"content": 3, "tool_calls": {"a": 1}}}],
            "usage": [],
            "timings": 1,
        },
    ],
)
def test_odd_events_give_nothing(odd):
    (end,) = play([[odd]])
    assert end["done"]
    assert end["eval_count"] == 0


def sums(lines):
    """Return what the lines of a stream add up to, however text was grouped."""
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
    messages = [line["message"] for line in lines]
    assert all("tool_calls" not in one for one in messages[:-2])
    return (
        "".join(one["content"] for one in messages),
        "".join(one.get("thinking", "") for one in messages),
        [call for one in messages for call in one.get("tool_calls", [])],
        {key: value for key, value in lines[-1].items() if key != "message"},
    )


def cut(text, places):
    ends = sorted({place for place in places if place < len(text)} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


PLACES = st.sets(st.integers(0, 40), max_size=6)
CALLS = st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=9), max_size=3), max_size=3)


@given(st.text(max_size=30), st.text(max_size=30), CALLS, st.data())
def test_any_pieces_in_any_groups_add_up_to_the_same(said, thought, calls, data):
    events = [chunk({"reasoning_content": part}) for part in cut(thought, data.draw(PLACES))]
    events += [chunk({"content": part}) for part in cut(said, data.draw(PLACES))]
    for index, arguments in enumerate(calls):
        events.append(piece(index, id=f"call{index}", name=f"f{index}"))
        pieces = cut(orjson.dumps(arguments).decode(), data.draw(PLACES))
        events += [piece(index, part) for part in pieces]
    events += [chunk({}, "tool_calls" if calls else "stop"), USAGE]
    ends = data.draw(st.sets(st.integers(0, len(events))))
    groups = [events[start:end] for start, end in zip([0, *sorted(ends)], [*sorted(ends), None], strict=True)]
    expected = [
        {"id": f"call{index}", "function": {"index": index, "name": f"f{index}", "arguments": arguments}}
        for index, arguments in enumerate(calls)
    ]
    assert sums(play(groups)) == (said, thought, expected, END)


@pytest.mark.parametrize("events", [[chunk({"content": "a"}), chunk({"content": "b"}, "stop")], []])
@pytest.mark.parametrize("generate", [False, True])
def test_sources_stand_in_the_first_line(events, generate):
    sources = [{"source": {"id": "f1"}, "document": ["words"], "metadata": [{}]}]
    made = ChatLines("m", generate=generate, clock=lambda: 1_700_000_000, sources=sources)
    answer = ollama.GenerateResponse if generate else ollama.ChatResponse
    first, *rest = lines_of(made.feed(events) + made.finish(TIMING), answer)
    assert first["sources"] == sources
    assert not any("sources" in line for line in rest)
