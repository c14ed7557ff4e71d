"""Tests for gatewayd.dialects.responses.items: input items as chat messages."""

from collections.abc import Sequence
from typing import Any

import pytest

from gatewayd.dialects.responses.fields import LeftOutParts
from gatewayd.dialects.responses.items import InputReader, items_of
from gatewayd.dialects.responses.sealed import MAX_SEALED_CHARACTERS, UserSeal
from gatewayd.dialects.responses.tools import ToolNames, convert_tools
from gatewayd.encryption import ENCRYPTED_PREFIX, TextCipher
from gatewayd.errors import GatewayError

CIPHER = TextCipher(b"secret", b"test")
SEAL = UserSeal(CIPHER, "u1")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def function_call(call_id: str, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": arguments, **more}


def result(call_id: str, output: Any = "r") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def reasoning(**content: Any) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": SEAL.close("reasoning", content)}


def read(items: Sequence[Any], left_out: LeftOutParts | None = None) -> list[dict[str, Any]]:
    reader = InputReader(ToolNames(), SEAL, left_out or LeftOutParts())
    for index, item in enumerate(items):
        reader.add(item, f"input[{index}]")
    return reader.finish()


def called(*ids: str, content: str | None = None, **more: Any) -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": content, **more, "tool_calls": calls}


def tool(call_id: str, content: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


CASES: dict[str, tuple[list[Any], list[dict[str, Any]]]] = {
    "easy messages": (
        [{"role": "developer", "content": "be"}, user("hi"), {"role": "assistant", "content": "ho"}],
        [{"role": "developer", "content": "be"}, user("hi"), {"role": "assistant", "content": "ho"}],
    ),
    "one text part is a text": (
        [{"role": "user", "content": [{"type": "input_text", "text": "a"}]}],
        [user("a")],
    ),
    "system parts are lines": (
        [{"role": "system", "content": [{"type": "input_text", "text": t} for t in "ab"]}],
        [{"role": "system", "content": "a\nb"}],
    ),
    "parallel calls are one message, all results after it": (
        [function_call("1"), function_call("2"), result("1"), result("2")],
        [called("1", "2"), tool("1"), tool("2")],
    ),
    "calls in turn are messages in turn": (
        [function_call("1"), result("1"), function_call("2"), result("2")],
        [called("1"), tool("1"), called("2"), tool("2")],
    ),
    "reasoning goes to the next text": (
        [user("q"), reasoning(text="th"), said("a")],
        [user("q"), {"role": "assistant", "content": "a", "reasoning_content": "th"}],
    ),
    "reasoning goes to the next call": (
        [reasoning(text="th", signature="s"), said("a"), function_call("1"), result("1")],
        [
            called(
                "1",
                content="a",
                reasoning_content="th",
                thinking_blocks=[{"type": "thinking", "thinking": "th", "signature": "s"}],
            ),
            tool("1"),
        ],
    ),
    "reasoning after a text begins another message": (
        [reasoning(text="1"), said("a"), reasoning(text="2"), function_call("1"), result("1")],
        [
            {"role": "assistant", "content": "a", "reasoning_content": "1"},
            called("1", reasoning_content="2"),
            tool("1"),
        ],
    ),
    "reasoning between parallel calls keeps them together": (
        [function_call("1"), reasoning(text="2"), function_call("2"), result("1"), result("2")],
        [called("1", "2", reasoning_content="2"), tool("1"), tool("2")],
    ),
    "a text between calls and results stays before the results": (
        [function_call("1"), said("wait"), result("1")],
        [called("1", content="wait"), tool("1")],
    ),
    "unencrypted reasoning": (
        [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}]}, said("a")],
        [{"role": "assistant", "content": "a", "reasoning_content": "s"}],
    ),
    "raw reasoning": (
        [{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "s"}]}, said("a")],
        [{"role": "assistant", "content": "a", "reasoning_content": "s"}],
    ),
    "reasoning without an answer": ([reasoning(text="th"), user("q")], [user("q")]),
    "sealed reasoning names its maker": (
        [reasoning(text="th", origin="acme openai"), said("a"), user("q")],
        [
            {
                "role": "assistant",
                "content": "a",
                "reasoning_content": "th",
                "reasoning_origin": "acme openai",
            },
            user("q"),
        ],
    ),
    "redacted": (
        [reasoning(data="d"), said("a")],
        [
            {
                "role": "assistant",
                "content": "a",
                "thinking_blocks": [{"type": "redacted_thinking", "data": "d"}],
            }
        ],
    ),
    "assistant items without status, with empty content": (
        [{"type": "message", "role": "assistant", "content": []}, user("q")],
        [{"role": "assistant", "content": ""}, user("q")],
    ),
    "arguments that are no JSON": (
        [function_call("1", "{broken"), result("1")],
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"INVALID_JSON":"{broken"}'},
                    }
                ],
            },
            tool("1"),
        ],
    ),
    "empty arguments": ([function_call("1", ""), result("1")], [called("1"), tool("1")]),
    "a result of parts": (
        [function_call("1"), result("1", [{"type": "input_text", "text": t} for t in "ab"])],
        [called("1"), tool("1", "a\nb")],
    ),
    "a result with a picture": (
        [
            function_call("1"),
            function_call("2"),
            result("1", [{"type": "input_image", "image_url": "data:x"}]),
            result("2"),
            user("q"),
        ],
        [
            called("1", "2"),
            tool("1", "(see the next message)"),
            tool("2"),
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Returned by tool call 1:"},
                    {"type": "image_url", "image_url": {"url": "data:x"}},
                ],
            },
            user("q"),
        ],
    ),
    "a custom call": (
        [
            {"type": "custom_tool_call", "call_id": "1", "name": "patch", "input": "ä"},
            {"type": "custom_tool_call_output", "call_id": "1", "output": "r"},
        ],
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "patch", "arguments": '{"input":"ä"}'},
                    }
                ],
            },
            tool("1"),
        ],
    ),
    "a call in a namespace": (
        [function_call("1", namespace="n"), result("1")],
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "n__f", "arguments": "{}"}}
                ],
            },
            tool("1"),
        ],
    ),
    "a call of a kind of its own that the client ran": (
        [
            {
                "type": "local_shell_call",
                "id": "x",
                "call_id": "1",
                "status": "completed",
                "action": {"c": 1},
            },
            {"type": "local_shell_call_output", "call_id": "1", "output": {"out": "r"}},
        ],
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "1",
                        "type": "function",
                        "function": {"name": "local_shell", "arguments": '{"action":{"c":1}}'},
                    }
                ],
            },
            tool("1", '{"out":"r"}'),
        ],
    ),
    "opaque members go back to their call": (
        [function_call("1"), reasoning(calls={"1": {"extra_content": {"g": 1}}}), result("1")],
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "extra_content": {"g": 1},
                        "id": "1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            tool("1"),
        ],
    ),
    "media": (
        [
            {
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": "https://x", "detail": "low"},
                    {"type": "input_file", "file_data": "data:y", "filename": "a.pdf"},
                    {"type": "input_audio", "input_audio": {"data": "zz", "format": "wav"}},
                ],
            }
        ],
        [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "https://x", "detail": "low"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:y"}},
                    {"type": "input_audio", "input_audio": {"data": "zz", "format": "wav"}},
                ],
            }
        ],
    ),
    "a summary of ours": (
        [{"type": "compaction", "encrypted_content": SEAL.close("compaction", {"summary": "S"})}],
        [user("Summary of the conversation so far:\n\nS")],
    ),
}


@pytest.mark.parametrize(("items", "messages"), CASES.values(), ids=CASES.keys())
def test_items_become_messages(items: list[Any], messages: list[dict[str, Any]]) -> None:
    assert read(items) == messages


def test_reasoning_of_a_known_origin() -> None:
    items = [reasoning(text="hm", origin="deepseek"), said("a")]
    (message,) = read(items)
    assert (message["reasoning_content"], message["reasoning_origin"]) == ("hm", "deepseek")


@pytest.mark.parametrize(
    "sealed",
    [
        "gAAAAforeign",
        f"{ENCRYPTED_PREFIX}damaged",
        UserSeal(CIPHER, "u2").close("reasoning", {"text": "theirs"}),
        UserSeal(TextCipher(b"other", b"test"), "u1").close("reasoning", {"text": "old"}),
        SEAL.close("compaction", {"text": "x"}),
        ENCRYPTED_PREFIX + "A" * MAX_SEALED_CHARACTERS,
    ],
    ids=["foreign", "damaged", "another user's", "of another secret", "another kind", "too long"],
)
def test_reasoning_that_cannot_be_opened_is_left_out_with_a_warning(sealed: str) -> None:
    left_out = LeftOutParts()
    item = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "s"}],
        "encrypted_content": sealed,
    }
    assert read([item, said("a")], left_out) == [{"role": "assistant", "content": "a"}]
    assert "reasoning that another provider encrypted" in left_out.sentences()[0]


def test_a_summary_that_cannot_be_opened_is_refused_as_the_conversation_would_be_lost() -> None:
    for sealed in ("gAAAAforeign", UserSeal(CIPHER, "u2").close("compaction", {"summary": "theirs"})):
        with pytest.raises(GatewayError) as caught:
            read([{"type": "compaction", "encrypted_content": sealed}])
        assert caught.value.code == "invalid_encrypted_content"


def test_calls_of_the_provider_are_left_out_with_a_warning() -> None:
    left_out = LeftOutParts()
    assert read([{"type": "web_search_call", "id": "ws_1"}, user("q")], left_out) == [user("q")]
    assert "items of type 'web_search_call'" in left_out.sentences()[0]
    for number in range(100):
        read([{"type": f"odd{number}"}], left_out)
    assert len(left_out.sentences()[0]) < 2000


def test_own_files_are_named_by_their_ids() -> None:
    reader = InputReader(ToolNames(), SEAL, LeftOutParts())
    parts = [{"type": "input_file", "file_id": "f1"}, {"type": "input_text", "text": "a"}]
    reader.add({"role": "user", "content": parts}, "input[0]")
    assert reader.finish() == [user("a")]
    assert reader.files == ["f1"]


BAD: list[tuple[Any, str]] = [
    (7, "input[0]"),
    ({}, "input[0].type"),
    ({"type": 7}, "input[0].type"),
    ({"role": "odd", "content": "x"}, "input[0].role"),
    ({"role": ["user"], "content": "x"}, "input[0].role"),
    ({"role": "user"}, "input[0].content"),
    ({"role": "user", "content": [7]}, "input[0].content[0]"),
    ({"role": "user", "content": [{"type": "odd"}]}, "input[0].content[0].type"),
    ({"role": "user", "content": [{"type": "input_text", "text": 7}]}, "input[0].content[0].text"),
    ({"role": "user", "content": [{"type": "input_image"}]}, "input[0].content[0].image_url"),
    (
        {"role": "user", "content": [{"type": "input_image", "image_url": {}}]},
        "input[0].content[0].image_url",
    ),
    (
        {"role": "user", "content": [{"type": "input_file", "file_url": "https://x"}]},
        "input[0].content[0].file_url",
    ),
    ({"role": "user", "content": [{"type": "input_file"}]}, "input[0].content[0].file_data"),
    ({"role": "assistant", "content": [{"type": "input_image"}]}, "input[0].content[0].type"),
    ({"type": "function_call", "call_id": "1", "name": "f"}, "input[0].arguments"),
    ({"type": "function_call", "call_id": "", "name": "f", "arguments": ""}, "input[0].call_id"),
    ({"type": "function_call", "call_id": "1", "name": 7, "arguments": ""}, "input[0].name"),
    ({"type": "function_call_output", "call_id": 7, "output": ""}, "input[0].call_id"),
    ({"type": "function_call_output", "call_id": "1", "output": 7}, "input[0].output"),
    ({"type": "reasoning", "encrypted_content": 7}, "input[0].encrypted_content"),
    ({"type": "reasoning", "summary": [{"type": "input_image"}]}, "input[0].summary[0].type"),
    ({"type": "compaction", "encrypted_content": "x"}, "input[0].encrypted_content"),
    ({"type": "item_reference", "id": "msg_1"}, "input[0]"),
]


@pytest.mark.parametrize(("item", "param"), BAD)
def test_a_bad_item_is_refused_by_its_field(item: Any, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        read([item])
    assert caught.value.param == param


@pytest.mark.parametrize("given", [7, {"role": "user"}, True])
def test_an_input_is_a_text_or_a_list(given: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        items_of({"input": given})
    assert caught.value.param == "input"
    assert items_of({}) == []
    assert items_of({"input": "hi"}) == [{"type": "message", "role": "user", "content": "hi"}]


def test_tools_in_the_input_are_tools_of_the_request() -> None:
    custom = {"type": "custom", "name": "exec"}
    tools = [{"type": "namespace", "name": "functions", "tools": [custom]}]
    items = [{"type": "additional_tools", "id": "at_1", "role": "developer", "tools": tools}, user("a")]
    names, left_out = ToolNames(), LeftOutParts()
    made = convert_tools({"input": [*items, items[0]]}, names, left_out)
    assert [tool["function"]["name"] for tool in made] == ["functions__exec"]
    assert read(items, left_out) == [user("a")]
    assert left_out.sentences() == []


def test_a_bad_tool_in_the_input_is_named() -> None:
    with pytest.raises(GatewayError) as caught:
        convert_tools({"input": [{"type": "additional_tools", "tools": [1]}]}, ToolNames(), LeftOutParts())
    assert caught.value.param == "input[0].tools[0]"


def test_tools_of_earlier_items_go_on_and_later_ones_win() -> None:
    def offer(*tools: dict[str, Any]) -> dict[str, Any]:
        return {"type": "additional_tools", "tools": list(tools)}

    old = {"type": "function", "name": "f", "description": "old"}
    new, own = {**old, "description": "new"}, {**old, "description": "own"}
    earlier = [offer(old, {"type": "custom", "name": "patch"}), user("a"), offer(new)]

    def offered(given: dict[str, Any]) -> dict[str, str]:
        made = convert_tools(given, ToolNames(), LeftOutParts(), earlier)
        return {tool["function"]["name"]: tool["function"].get("description", "") for tool in made}

    assert offered({"input": "b"}) == {"f": "new", "patch": ""}
    assert offered({"tools": [own], "input": "b"}) == {"f": "own", "patch": ""}
    with pytest.raises(GatewayError, match="offers over 20000 tools") as caught:
        convert_tools({}, ToolNames(), LeftOutParts(), [offer(*[old] * 500)] * 41)
    assert caught.value.param == "previous_response_id"


def test_a_tool_that_is_offered_twice_keeps_its_first_form() -> None:
    """A second offer in another form must not change how its calls are read."""
    first, second = {"type": "function", "name": "f"}, {"type": "custom", "name": "f"}
    names = ToolNames()
    (made,) = convert_tools({"tools": [first, second, first]}, names, LeftOutParts())
    assert "input" not in made["function"]["parameters"]["properties"]
    assert not names.tool("f").is_custom


def test_names_with_dots_and_twins_of_namespaces_stay_apart() -> None:
    def space(name: str, *tools: str) -> dict[str, Any]:
        inner = [{"type": "function", "name": each} for each in tools]
        return {"type": "namespace", "name": name, "tools": inner}

    names = ToolNames()
    given = [
        {"type": "function", "name": "a__b.c"},
        space("a", "b.c", "b_c"),
        space("a__b", "c"),
        space("a.b", "c"),
    ]
    made = [tool["function"]["name"] for tool in convert_tools({"tools": given}, names, LeftOutParts())]
    assert len(set(made)) == len(made) == 5
    assert [names.tool(each)[:2] for each in made] == [
        *(("a__b.c", None), ("b.c", "a"), ("b_c", "a"), ("c", "a__b"), ("c", "a.b"))
    ]
