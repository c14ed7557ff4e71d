import pytest

from gatewayd.completions.limits import AnswerSizeError
from gatewayd.dialects.responses.upstream_events import MAX_PARTS, ResponseDecoder
from gatewayd.dialects.responses.upstream_reply import to_completion
from tests.fakes.providers.completion_assembler import Gatherer
from tests.fakes.providers.responses_stream import call, events_of, message, reasoning, response_of

LONDON = '{"city":"London"}'
CITED = [{"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 2}]
REFUSAL = {
    "id": "msg_9",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "refusal", "refusal": "I cannot do that"}],
}
CUSTOM = {"id": "ct_1", "type": "custom_tool_call", "call_id": "call_c", "name": "patch", "input": "*** a"}

ANSWERS = {
    "text": response_of(message("Hello there")),
    "two messages": response_of(message("I look it up"), message("It rains", 1)),
    "citations": response_of(message("I look"), message("It rains", 1, annotations=CITED)),
    "calls": response_of(
        reasoning("First", "Second"),
        call("weather", LONDON),
        reasoning("Third", data="MORE", number=1),
        call("now", "{}", 1),
    ),
    "call without arguments": response_of(call("now", "")),
    "refusal": response_of(REFUSAL),
    "cut": response_of(
        message("Hel"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "filtered": response_of(status="incomplete", incomplete_details={"reason": "content_filter"}),
    "hosted tool": response_of(
        {"id": "ws_1", "type": "web_search_call", "status": "completed"}, message("A")
    ),
    "tier": response_of(message("A"), service_tier="flex"),
}


def gathered(events):
    decoder = ResponseDecoder(5, "acme", include_usage=True)
    chunks = [chunk for event in events for chunk in decoder.decode(event)]
    assert decoder.error is None
    assert decoder.is_done
    assert decoder.is_complete
    gatherer = Gatherer()
    gatherer.feed(chunks)
    return gatherer.completion()


def without_deltas(events):
    return [event for event in events if not event["type"].endswith(".delta")]


def only_items(events):
    """The items when they are done, and no output at the end, as one large bridge streams."""
    kept = [
        event
        for event in events
        if event["type"].startswith(("response.output_item.done", "response.created"))
    ]
    return [*kept, {**events[-1], "response": {**events[-1]["response"], "output": []}}]


def only_the_end(events):
    return events[-1:]


def other_ids(events):
    """Other ids of items at their end than at their start."""
    return [
        {**event, **({"item_id": f"x{number}"} if "item_id" in event else {})}
        for number, event in enumerate(events)
    ]


def without_numbers(events):
    return [{name: event[name] for name in event if name != "output_index"} for event in events]


@pytest.mark.parametrize(
    "change", [list, without_numbers, without_deltas, only_items, only_the_end, other_ids]
)
@pytest.mark.parametrize("response", ANSWERS.values(), ids=ANSWERS)
def test_a_stream_is_the_whole_answer(response, change):
    whole = to_completion(response, 5, "acme")
    assert gathered(change(events_of(response))) == whole


def test_completion_of_calls():
    completion = to_completion(ANSWERS["calls"], 5, "acme")
    choice = completion["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["reasoning_content"] == "First\n\nSecond\n\nThird"
    assert choice["message"]["tool_calls"] == [
        {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": LONDON}},
        {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    first, second = choice["message"]["reasoning_details"]
    assert (first["data"], first["id"], first["calls"], first["origin"]) == ("SECRET", "rs_0", 0, "acme")
    assert (second["data"], second["calls"], second["index"]) == ("MORE", 1, 1)
    assert completion["usage"] == {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("two messages", "I look it up\n\nIt rains", "stop"),
        ("cut", "Hel", "length"),
        ("filtered", "", "content_filter"),
        ("refusal", None, "stop"),
    ],
)
def test_texts_and_reasons(name, content, reason):
    choice = to_completion(ANSWERS[name], 5, "acme")["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (content, reason)


def test_annotations_move_with_their_text():
    message = to_completion(ANSWERS["citations"], 5, "acme")["choices"][0]["message"]
    (annotation,) = message["annotations"]
    cited = annotation["url_citation"]
    assert message["content"][cited["start_index"] : cited["end_index"]] == "It"


def test_the_text_of_an_open_model_comes_once():
    item = {**reasoning("short"), "content": [{"type": "reasoning_text", "text": "all of it"}]}
    events = [
        {
            "type": "response.reasoning_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": "all of it",
        },
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        events_of(response_of())[-1],
    ]
    assert gathered(events)["choices"][0]["message"]["reasoning_content"] == "all of it"


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}, "slow"),
        ({"type": "error", "error": {"message": "inner", "code": "server_error"}}, "inner"),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "died"}}},
            "died",
        ),
        ({"type": "response.failed", "response": {"error": None}}, "the answer has the status 'failed'"),
        ({"type": "response.cancelled", "response": {}}, "the answer has the status 'cancelled'"),
    ],
)
def test_failures(event, message):
    decoder = ResponseDecoder(5, "acme", include_usage=False)
    decoder.decode(event)
    assert decoder.error["message"] == message
    assert not decoder.is_complete


def test_odd_events_give_nothing():
    decoder = ResponseDecoder(5, "acme", include_usage=False)
    odd = [
        {},
        {"type": 5},
        {"type": "response.output_text.delta", "output_index": "x", "delta": None},
        {"type": "response.function_call_arguments.delta", "output_index": 7, "delta": "{"},
        {"type": "response.output_item.done", "output_index": 8, "item": None},
        {"type": "response.output_item.added", "output_index": 9, "item": {"type": []}},
        {"type": "response.future.delta", "delta": "x"},
    ]
    chunks = [chunk for event in odd for chunk in decoder.decode(event)]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [{"role": "assistant", "content": ""}]


def test_custom_calls():
    call = {"id": "call_c", "type": "custom", "custom": {"name": "patch", "input": "*** a"}}
    assert to_completion(response_of(CUSTOM), 5, "acme")["choices"][0]["message"]["tool_calls"] == [call]
    decoder = ResponseDecoder(5, "acme", include_usage=False)
    chunks = [chunk for event in events_of(response_of(CUSTOM)) for chunk in decoder.decode(event)]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert [delta["tool_calls"] for delta in deltas if "tool_calls" in delta] == [[{"index": 0, **call}]]


@pytest.mark.parametrize(
    "event",
    [
        lambda number: {"type": "response.output_item.added", "output_index": number, "item": {}},
        lambda number: {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": number,
            "delta": "x",
        },
        lambda number: {"type": "response.output_text.annotation.added", "output_index": 0, "annotation": {}},
    ],
    ids=["items", "texts", "annotations"],
)
def test_an_answer_of_very_many_parts_ends(event):
    decoder = ResponseDecoder(5, "acme", include_usage=False)
    with pytest.raises(AnswerSizeError, match="over 10000 parts"):
        for number in range(MAX_PARTS + 1):
            decoder.decode(event(number))
