"""Tests for gatewayd.pipeline.responses.items."""

from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.pipeline.responses.items import ResponseItems

ITEMS = ResponseItems()
REASONING = {"type": "reasoning", "id": "rs", "encrypted_content": "x"}
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"q": "a"}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "found"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
PARTS = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "a"}, IMAGE, {"type": "input_file", "file_id": "f"}],
}
ANSWER = {"role": "assistant", "content": [{"type": "output_text", "text": "b"}]}
FULL = {"instructions": "be kind", "input": [PARTS, ANSWER, REASONING, CALL, RESULT], "store": False}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_items_are_shown_as_messages() -> None:
    assert ITEMS.to_messages(FULL) == [
        system("be kind"),
        user(
            [
                {"type": "text", "text": "a"},
                {"type": "image_url", "image_url": {"url": IMAGE["image_url"], "detail": "low"}},
                {"type": "input_file", "file_id": "f"},
            ]
        ),
        {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "look", "arguments": '{"q": "a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    ]


@pytest.mark.parametrize("body", [FULL, {"input": "hi"}, {"instructions": "x", "input": "hi"}, {}])
def test_what_nobody_changed_comes_back_as_it_was(body: dict[str, Any]) -> None:
    assert ITEMS.from_messages(body, ITEMS.to_messages(body)) == body


def test_changed_messages_stay_in_their_places() -> None:
    messages = ITEMS.to_messages(FULL)
    messages[1]["content"][0]["text"] = "A"
    messages[2] = {"role": "assistant", "content": "B"}
    messages[3]["tool_calls"][0]["function"]["arguments"] = "{}"
    messages[4]["content"] = [{"type": "text", "text": "F"}]
    changed = ITEMS.from_messages(FULL, [system("be rude"), *messages[1:]])
    assert changed == {
        "instructions": "be rude",
        "input": [
            {**PARTS, "content": [{"type": "input_text", "text": "A"}, *PARTS["content"][1:]]},  # type: ignore[index]
            {"role": "assistant", "content": "B"},
            REASONING,
            {**CALL, "arguments": "{}"},
            {**RESULT, "output": "F"},
        ],
        "store": False,
    }


def test_system_messages_that_filters_add_or_take_are_instructions() -> None:
    assert ITEMS.from_messages({"input": "hi"}, [system("a"), user("hi")]) == {
        "instructions": "a",
        "input": "hi",
    }
    added = ITEMS.from_messages(FULL, [system("new"), *ITEMS.to_messages(FULL)])
    assert added == {**FULL, "instructions": "new\n\nbe kind"}
    assert ITEMS.from_messages(FULL, ITEMS.to_messages(FULL)[1:])["instructions"] is None


TEXT_PARTS = [{"type": "input_text", "text": "a"}, IMAGE]
OWN_CALL = {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "keep"}


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("function_call_output", "found"),
        ("function_call_output", TEXT_PARTS),
        ("custom_tool_call_output", "found"),
        ("custom_tool_call_output", TEXT_PARTS),
        ("local_shell_call_output", "found"),
    ],
)
def test_results_of_every_tool_are_shown(kind: str, output: Any) -> None:
    item = {"type": kind, "call_id": "c1", "output": output}
    body = {"input": [item]}
    (message,) = ITEMS.to_messages(body)
    assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
    assert ITEMS.from_messages(body, [message]) == body
    if isinstance(output, str):
        changed, expected = "A", "A"
    else:
        changed = [{**message["content"][0], "text": "A"}, *message["content"][1:]]
        expected = [{"type": "input_text", "text": "A"}, IMAGE]
    after = ITEMS.from_messages(body, [{**message, "content": changed}])
    assert after["input"] == [{**item, "output": expected}]


def test_input_of_a_custom_tool_is_shown() -> None:
    body = {"input": [OWN_CALL]}
    (message,) = ITEMS.to_messages(body)
    assert message["tool_calls"][0]["function"] == {"name": "note", "arguments": "keep"}
    message["tool_calls"][0]["function"]["arguments"] = "hide"
    assert ITEMS.from_messages(body, [message])["input"] == [{**OWN_CALL, "input": "hide"}]


@pytest.mark.parametrize(
    "body",
    [
        {"input": [{"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": {"text": "a"}}]},
        {"input": "hi", "prompt": {"id": "p", "variables": {"name": "a"}}},
    ],
)
def test_texts_that_no_message_shows_are_refused(body: dict[str, Any]) -> None:
    with pytest.raises(GatewayError) as caught:
        ITEMS.to_messages(body)
    assert (caught.value.code, caught.value.param) == ("not_expressible", list(body)[-1])


def test_pictures_and_stored_prompts_without_texts_stay_where_they_are() -> None:
    picture = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}
    body = {"input": [picture], "prompt": {"id": "p", "variables": {}}}
    assert ITEMS.to_messages(body) == []
    assert ITEMS.from_messages(body, []) == body


def test_items_are_made_anew_where_messages_came_or_went() -> None:
    body = {"input": [PARTS, CALL, RESULT]}
    messages = ITEMS.to_messages(body)
    assert ITEMS.from_messages(body, [*messages, user("more")])["input"] == [
        PARTS,
        CALL,
        RESULT,
        {"type": "message", "role": "user", "content": "more"},
    ]
    assert ITEMS.from_messages({"input": "hi"}, [user("a"), user("b")])["input"] == [
        {"type": "message", "role": "user", "content": "a"},
        {"type": "message", "role": "user", "content": "b"},
    ]
    for other in (FULL, {"input": [OWN_CALL]}):
        with pytest.raises(GatewayError, match="items of other kinds"):
            ITEMS.from_messages(other, [*ITEMS.to_messages(other), user("more")])


def test_a_prompt_stands_before_the_callers_instructions() -> None:
    assert ITEMS.with_system({"input": "hi"}, "own")["instructions"] == "own"
    assert ITEMS.with_system({"instructions": "mine"}, "own")["instructions"] == "own\nmine"


def test_parameters_have_the_names_of_the_protocol() -> None:
    schema = {"name": "s", "schema": {"type": "object"}, "strict": True}
    params = {
        "temperature": 0,
        "max_tokens": 5,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    sent = {"temperature": 2, "max_output_tokens": 99, "reasoning": {"summary": "auto"}, "input": "hi"}
    assert ITEMS.with_params(sent, params) == {
        "input": "hi",
        "temperature": 0,
        "max_output_tokens": 5,
        "reasoning": {"summary": "auto", "effort": "low"},
        "text": {"format": {"type": "json_schema", **schema}},
    }


def test_pieces_of_text_are_chunks_and_what_was_held_back_comes_before_the_end() -> None:
    piece = {"type": "response.output_text.delta", "output_index": 2, "content_index": 0, "delta": "a"}
    shown = ITEMS.to_chunk(piece)
    assert shown is not None
    assert shown["choices"] == [{"index": 2, "delta": {"content": "a"}, "finish_reason": None}]
    assert ITEMS.from_chunk(piece, shown) == [piece]
    end = {"type": "response.output_text.done", "output_index": 2, "content_index": 0, "text": "a"}
    shown = ITEMS.to_chunk(end)
    assert shown is not None
    assert shown["choices"][0]["finish_reason"] == "stop"
    assert ITEMS.from_chunk(end, shown) == [end]
    shown["choices"][0]["delta"] = {"content": "held"}
    assert ITEMS.from_chunk(end, shown) == [{**piece, "delta": "held"}, end]
    assert ITEMS.to_chunk({"type": "response.created"}) is None
