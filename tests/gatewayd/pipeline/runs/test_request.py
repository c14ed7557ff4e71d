"""Tests for gatewayd.pipeline.runs.request."""

from typing import Any

import pytest

from gatewayd.errors import GatewayError
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.runs.interfaces import RunOptions
from gatewayd.pipeline.runs.request import (
    AnswerTarget,
    copy_for_answers,
    has_history,
    parse_run_request,
    wants_run,
)


def request(**options: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return ChatRequest("m", body, stream=True, options={"chat_id": "c", **options})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"session_id": "s"}, True),
        ({"id": "a"}, True),
        ({"message_ids": {"m": "a"}}, True),
        ({"user_message": {"id": "q"}}, True),
        ({"chat_id": None, "session_id": "s"}, False),
        ({"chat_id": "", "session_id": "s", "id": "a"}, False),
    ],
)
def test_run_needs_a_chat_and_something_to_answer(options: dict[str, Any], expected: bool) -> None:
    assert wants_run(request(**options)) is expected


def test_order_is_read() -> None:
    question = {"id": "q", "content": "why"}
    background = {"title_generation": True, "tags_generation": False}
    order = parse_run_request(
        request(id="a", session_id="s", user_message=question, background_tasks=background)
    )
    assert order.answered == (AnswerTarget("m", "a"),)
    assert (order.user_message, order.parent_id) == (question, "q")
    assert order.background == {"title_generation"}
    assert order.is_stored


def test_answer_without_an_id_gets_one() -> None:
    assert parse_run_request(request(), new_id=lambda: "new").answered == (AnswerTarget("m", "new"),)
    assert parse_run_request(request(assistant_message_id="b")).answered == (AnswerTarget("m", "b"),)


@pytest.mark.parametrize(
    "several",
    [
        {"m": "a", "n": "b"},
        [{"model_id": "m", "message_id": "a", "modelIdx": 0}, {"model_id": "n", "message_id": "b"}],
    ],
)
def test_several_answers_are_read(several: Any) -> None:
    order = parse_run_request(request(message_ids=several))
    assert order.answered == (AnswerTarget("m", "a"), AnswerTarget("n", "b"))


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"chat_id": 3}, "chat_id"),
        ({"session_id": ["s"]}, "session_id"),
        ({"id": {}}, "id"),
        ({"parent_id": 1}, "parent_id"),
        ({"user_message": "text"}, "user_message"),
        ({"user_message": {"content": "no id"}}, "user_message"),
        ({"user_message": {"id": "q", "content": 3}}, "user_message.content"),
        ({"user_message": {"id": "q", "parentId": 3}}, "user_message.parentId"),
        ({"message_ids": "a"}, "message_ids"),
        ({"message_ids": ["a"]}, "message_ids[0]"),
        ({"message_ids": {"m": 1}}, "message_ids[0]"),
        ({"message_ids": [{"model_id": "", "message_id": "a"}]}, "message_ids[0]"),
        ({"message_ids": {"m": "a", "n": "a"}}, "message_ids"),
        ({"message_ids": {str(n): str(n) for n in range(40)}}, "message_ids"),
        ({"background_tasks": [1]}, "background_tasks"),
    ],
)
def test_wrong_field_is_named(options: dict[str, Any], param: str) -> None:
    with pytest.raises(GatewayError) as caught:
        parse_run_request(request(**options))
    assert caught.value.param == param


def test_copies_share_nothing_that_filters_change() -> None:
    sent = request()
    first, second = copy_for_answers(sent, [AnswerTarget("m", "a"), AnswerTarget("n", "b")])
    assert (first.model, first.body["model"], first.options["id"]) == ("m", "m", "a")
    assert (second.model, second.body["model"], second.options["id"]) == ("n", "n", "b")
    assert first.body["messages"][0] is not second.body["messages"][0]


def test_history_may_stand_for_messages() -> None:
    assert has_history({"chat_id": "c", "user_message": {"id": "q"}})
    assert not has_history({"chat_id": "c", "user_message": {}})
    assert not has_history({"user_message": {"id": "q"}})


def test_answers_are_kept_at_their_end_unless_set_otherwise() -> None:
    assert not RunOptions().is_saved_often
