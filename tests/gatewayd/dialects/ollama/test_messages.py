import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd.dialects.ollama.messages import ConversationConverter, with_images
from gatewayd.errors import ErrorKind, GatewayError

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()


def convert(*messages):
    warnings = []
    conversation = ConversationConverter(warnings)
    for index, message in enumerate(messages):
        conversation.add(message, f"messages[{index}]")
    return conversation.messages, warnings


def call(name, arguments, **more):
    return {**more, "function": {"name": name, "arguments": arguments}}


def calls(*made):
    return {"role": "assistant", "content": "", "tool_calls": list(made)}


def result(content, **more):
    return {"role": "tool", "content": content, **more}


def ids(messages):
    return [message["tool_call_id"] for message in messages if message["role"] == "tool"]


def test_plain_messages():
    turns = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    assert convert(*turns) == (turns, [])


def test_thinking_and_null_fields():
    message = {"role": "assistant", "content": "a", "thinking": "hm", "images": None, "tool_calls": None}
    assert convert(message)[0] == [{"role": "assistant", "content": "a", "reasoning_content": "hm"}]


def test_tool_round_by_order():
    messages, warnings = convert(
        calls(call("f", {"a": [1]}), call("f", {"a": 2}), call("g", {})),
        result("one", tool_name="f"),
        result("three", tool_name="g"),
        result("two", tool_name="f"),
        calls(call("f", {})),
        result("four"),
    )
    assert messages[0] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": '{"a":[1]}'}},
            {"id": "call00002", "type": "function", "function": {"name": "f", "arguments": '{"a":2}'}},
            {"id": "call00003", "type": "function", "function": {"name": "g", "arguments": "{}"}},
        ],
    }
    assert messages[1] == {"role": "tool", "content": "one", "tool_call_id": "call00001"}
    assert ids(messages) == ["call00001", "call00003", "call00002", "call00004"]
    assert warnings == []


def test_tool_round_by_id():
    messages, warnings = convert(
        calls(call("f", {}, id="a"), call("f", {}, id="b")),
        result("two", tool_call_id="b", tool_name="f"),
        result("one", name="f"),
    )
    assert ids(messages) == ["b", "a"]
    assert warnings == []


def test_arguments_may_be_text():
    messages, _ = convert(calls(call("f", '{"a": 1}'), call("f", None)))
    assert [made["function"]["arguments"] for made in messages[0]["tool_calls"]] == ['{"a":1}', "{}"]


@pytest.mark.parametrize(
    "more", [{}, {"tool_name": "g"}, {"tool_call_id": "x"}, {"tool_name": "f", "tool_call_id": "x"}]
)
def test_a_result_without_its_call_is_kept_with_a_warning(more):
    made = [] if not more else [calls(call("f", {}, id="a"))]
    messages, warnings = convert(*made, result("lost", **more))
    assert messages[-1]["content"] == "lost"
    assert messages[-1]["tool_call_id"] == more.get("tool_call_id", "call00001")
    assert messages[-1].get("name") == more.get("tool_name")
    assert warnings == [f"cannot match messages[{len(made)}]: it answers no open tool call before it"]


NAMES = st.sampled_from(["f", "g"])
IDS = st.sampled_from(["a", "b", ""])


@given(st.lists(st.tuples(NAMES, IDS)), st.lists(st.tuples(NAMES | st.just(""), IDS)))
def test_a_result_answers_the_first_open_call_that_it_may_mean(made, told):
    messages, _ = convert(
        calls(*(call(name, {}, id=own_id) for name, own_id in made)),
        *(result("x", tool_name=name, tool_call_id=own_id) for name, own_id in told),
    )
    given_ids = [item["id"] for item in messages[0].get("tool_calls", ())]
    waiting = [(own_id, name) for own_id, (name, _) in zip(given_ids, made, strict=True)]
    for (name, own_id), answered in zip(told, ids(messages), strict=True):
        meant = [item for item in waiting if (item[0] == own_id if own_id else name in ("", item[1]))]
        if meant:
            waiting.remove(meant[0])
            assert answered == meant[0][0]
        else:
            assert answered == own_id or answered not in given_ids


def image(data):
    return with_images("", {"images": [base64.b64encode(data).decode()]}, "images")[0]["image_url"]["url"]


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\nx", "image/png"),
        (b"\xff\xd8\xff\xe0x", "image/jpeg"),
        (b"GIF89ax", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
        (b"BM\x00", "image/bmp"),
        (b"II*\x00", "image/tiff"),
        (b"MM\x00*", "image/tiff"),
        (b"\x00\x00\x00\x1cftypavif", "image/avif"),
        (b"\x00\x00\x00\x1cftypheic", "image/heic"),
    ],
)
def test_images_by_their_signature(data, media_type):
    assert image(data) == f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def test_images_beside_text():
    lines = PNG[:8] + "\n" + PNG[8:]
    holder = {"images": [lines, f"data:image/jpeg;base64,{PNG}"]}
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    assert with_images("look", holder, "images") == [{"type": "text", "text": "look"}, part, part]
    assert with_images("look", {"images": []}, "images") == "look"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("hi", "messages[0]"),
        ({"content": "hi"}, "messages[0].role"),
        ({"role": ["user"]}, "messages[0].role"),
        ({"role": "function"}, "messages[0].role"),
        ({"role": "user", "content": 3}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content"),
        ({"role": "assistant", "thinking": 3}, "messages[0].thinking"),
        ({"role": "user", "images": "x"}, "messages[0].images"),
        ({"role": "user", "images": [3]}, "messages[0].images[0]"),
        ({"role": "user", "images": ["http://x/a.png"]}, "messages[0].images[0]"),
        ({"role": "user", "images": ["%%%%"]}, "messages[0].images[0]"),
        ({"role": "user", "images": ["\u00fc"]}, "messages[0].images[0]"),
        ({"role": "user", "images": ["abc"]}, "messages[0].images[0]"),
        ({"role": "user", "images": ["QUJD"]}, "messages[0].images[0]"),
        ({"role": "user", "images": ["data:image/png,x"]}, "messages[0].images[0]"),
        ({"role": "assistant", "tool_calls": {"a": 1}}, "messages[0].tool_calls"),
        (calls(3), "messages[0].tool_calls[0]"),
        (calls({"function": "f"}), "messages[0].tool_calls[0]"),
        (calls(call(3, {})), "messages[0].tool_calls[0].function.name"),
        (calls(call("f", "x")), "messages[0].tool_calls[0].function.arguments"),
        (calls(call("f", [1])), "messages[0].tool_calls[0].function.arguments"),
        (calls(call("f", {}, id=3)), "messages[0].tool_calls[0].id"),
        (result("x", tool_name=3), "messages[0].tool_name"),
        (result("x", tool_call_id=3), "messages[0].tool_call_id"),
    ],
)
def test_bad_messages_name_the_field(message, param):
    with pytest.raises(GatewayError) as caught:
        convert(message)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param
