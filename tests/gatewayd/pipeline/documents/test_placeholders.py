"""Tests for gatewayd.pipeline.documents.placeholders."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.placeholders import (
    MAX_INSERTED_CHARACTERS,
    MAX_PLACEHOLDERS,
    fill_message_request,
    fill_placeholders,
    fill_system_messages,
)
from gatewayd.pipeline.records import ChatRequest
from tests.fakes.providers.models import make_actor

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
NAME = make_actor().user.name


def filled(content: Any, *, variables: Any = None, role: str = "system", **changes: Any) -> ChatRequest:
    messages = [{"role": role, "content": content}, {"role": "user", "content": "{{USER_NAME}}?"}]
    request = ChatRequest(
        "m", {"messages": messages}, stream=False, options={"variables": variables}, **changes
    )
    fill_system_messages(request, make_actor(), lambda: NOW)
    return request


def test_values_of_placeholders_are_not_filled_themselves() -> None:
    assert fill_placeholders("{{A}} {{B}}", {"{{A}}": "{{B}}", "{{B}}": "b"}) == "{{B}} b"


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_message_of_a_caller_is_filled_and_the_question_is_not(role: str) -> None:
    request = filled("{{USER_NAME}} on {{CURRENT_DATE}}, {{X}} {{Y}}", variables={"{{X}}": "x"}, role=role)
    system, question = request.body["messages"]
    assert system == {"role": role, "content": f"{NAME} on 2026-03-01, x {{{{Y}}}}"}
    assert question["content"] == "{{USER_NAME}}?"


def test_parts_are_filled_and_keep_their_other_fields() -> None:
    part = {"type": "text", "text": "{{USER_NAME}}", "cache_control": {"type": "ephemeral"}}
    picture = {"type": "image_url", "image_url": {"url": "{{USER_NAME}}"}}
    assert filled([part, picture]).body["messages"][0]["content"] == [{**part, "text": NAME}, picture]


@pytest.mark.parametrize("content", ["plain", "", None, [], [{"type": "text", "text": "{ {"}]])
def test_request_without_placeholders_stays_the_same_object(content: Any) -> None:
    request = ChatRequest("m", {"messages": [{"role": "system", "content": content}]}, stream=False)
    messages = request.body["messages"]
    fill_system_messages(request, make_actor(), lambda: NOW)
    assert request.body["messages"] is messages


def test_native_form_is_filled_too_and_stays_otherwise_unchanged() -> None:
    native = {"system": [{"type": "text", "text": "{{CURRENT_TIME}}"}], "messages": [], "thinking": {"a": 1}}
    request = filled("{{CURRENT_TIME}}", native=native)
    assert request.native == {**native, "system": [{"type": "text", "text": "12:30:00"}]}
    assert native["system"] == [{"type": "text", "text": "{{CURRENT_TIME}}"}]


@pytest.mark.parametrize(
    ("text", "value", "param"),
    [
        ("{{X}}" * 5, "x" * (MAX_INSERTED_CHARACTERS // 4), "variables"),
        ("{{" * (MAX_PLACEHOLDERS + 1), "", "messages"),
    ],
)
def test_text_that_would_grow_without_bounds_is_refused(text: str, value: str, param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        filled(text, variables={"{{X}}": value})
    assert (caught.value.kind, caught.value.param) == (ErrorKind.INVALID_REQUEST, param)


def test_a_messages_request_is_filled_as_for_an_answer() -> None:
    text = {"type": "text", "text": "{{USER_NAME}}"}
    body = {
        "system": [text, {"type": "odd", "text": "{{USER_NAME}}"}],
        "messages": [
            {"role": "system", "content": "{{X}}"},
            {"role": "user", "content": "{{X}}"},
            {"role": ["system"], "content": "{{X}}"},
            "odd",
        ],
        "variables": {"{{X}}": "x", "{{Y}}": 7},
    }
    made = fill_message_request(body, make_actor(), lambda: NOW)
    assert made["system"] == [{**text, "text": NAME}, body["system"][1]]
    assert made["messages"] == [{"role": "system", "content": "x"}, *body["messages"][1:]]


@pytest.mark.parametrize("system", ["plain", None, 7, [], [7, {"type": "text", "text": 7}], {"a": "{{X}}"}])
@pytest.mark.parametrize("messages", [None, "{{X}}", [{"role": "user", "content": "{{X}}"}]])
def test_a_messages_request_without_placeholders_stays_the_same_object(system: Any, messages: Any) -> None:
    body = {"system": system, "messages": messages}
    assert fill_message_request(body, make_actor(), lambda: NOW) is body


def test_a_messages_request_with_too_many_placeholders_is_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        fill_message_request({"system": "{{" * (MAX_PLACEHOLDERS + 1)}, make_actor())
    assert caught.value.param == "messages"
