"""Tests for gatewayd.pipeline.filters.context."""

from typing import Any

import pytest

from gatewayd.completions.records import Completion
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.filters.context import FilterContext, json_problem
from gatewayd.pipeline.records import ChatRequest
from tests.fakes.providers.models import make_actor, make_model

FILES = [{"type": "file", "id": "f"}]


def ask(**changes: Any) -> ChatRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **changes.pop("body", {})}
    return ChatRequest(model="m", body=body, stream=changes.pop("stream", False), **changes)


def exchange_of(request: ChatRequest) -> FilterContext:
    scope = request.scope = make_scope(request, make_model("m"), None, make_actor())
    made = FilterContext(request, scope)
    made.begin(has_outlets=True)
    return made


def test_the_body_has_the_gateways_own_fields_and_the_one_metadata() -> None:
    request = ask(files=FILES, options={"tool_ids": ["t"], "features": {"x": True}, "chat_id": "c"})
    exchange = exchange_of(request)
    form = exchange.form()
    assert form["metadata"] is exchange.scope.metadata
    assert form["stream"] is False
    assert (form["files"], form["tool_ids"], form["features"]) == (FILES, ["t"], {"x": True})
    assert "chat_id" not in form


def test_without_files_and_tools_the_body_has_none() -> None:
    form = exchange_of(ask(stream=True)).form()
    assert form.keys() == {"model", "messages", "stream", "metadata"}
    assert form["stream"] is True


def test_extra_keys_travel_and_own_fields_do_not() -> None:
    request = ask()
    exchange = exchange_of(request)
    form = {**exchange.form(), "top_k": 3, "chat_id": "c", "params": {}, "tool_servers": [1]}
    exchange.take({**form, "model": "other", "stream": True, "tool_ids": ["t"]}, "f")
    assert request.body == {"model": "other", "messages": form["messages"], "stream": False, "top_k": 3}
    assert request.model == "other"
    assert request.options == {"tool_ids": ["t"], "tool_servers": [1]}
    assert exchange.scope.metadata["tool_ids"] == ["t"]
    assert "chat_id" not in request.options


def test_metadata_that_the_caller_sent_goes_to_the_source_as_it_came() -> None:
    request = ask(body={"metadata": {"trace": "1"}})
    exchange = exchange_of(request)
    form = exchange.form()
    assert "trace" not in form["metadata"]
    exchange.take(form, "f")
    assert request.body["metadata"] == {"trace": "1"}


def test_files_and_tools_may_be_taken_away_and_added() -> None:
    request = ask(files=FILES, options={"tool_ids": ["t"]})
    exchange = exchange_of(request)
    form = exchange.form()
    del form["files"], form["tool_ids"]
    exchange.take(form, "f")
    assert (request.files, request.options) == ([], {})
    assert exchange.scope.files is None
    exchange.take({**exchange.form(), "files": FILES}, "f")
    assert request.files == exchange.scope.files == exchange.scope.metadata["files"] == FILES
    exchange.drop_files()
    assert request.files == []
    assert exchange.scope.files is None
    assert exchange.scope.metadata["files"] is None


def test_a_metadata_of_the_filters_own_is_the_one_from_then_on() -> None:
    exchange = exchange_of(ask())
    mine = {"mine": 1}
    exchange.take({**exchange.form(), "metadata": mine}, "f")
    assert exchange.scope.metadata is mine
    assert exchange.form()["metadata"] is mine


def test_the_callers_messages_are_not_touched() -> None:
    request = ask()
    messages = request.body["messages"]
    exchange = exchange_of(request)
    exchange.form()["messages"][0]["content"] = "changed"
    assert messages == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    "change",
    [
        {"model": ""},
        {"model": None},
        {"messages": "hi"},
        {"messages": ["hi"]},
        {"files": "f"},
        {"files": ["f"]},
        {"odd": {1, 2}},
        {"odd": {(1, 2): 3}},
    ],
)
def test_a_body_that_is_none_is_refused(change: dict[str, Any]) -> None:
    exchange = exchange_of(ask())
    with pytest.raises(GatewayError) as caught:
        exchange.take({**exchange.form(), **change}, "mine")
    assert caught.value.kind is ErrorKind.PLUGIN_FAILED
    assert "'mine'" in caught.value.message


@pytest.mark.parametrize("form", ["x", [], 7])
def test_what_is_no_object_is_refused(form: Any) -> None:
    with pytest.raises(GatewayError):
        exchange_of(ask()).take(form, "mine")


def completion(content: Any) -> Completion:
    message = {"role": "assistant", "content": content}
    return Completion(body={"id": "c", "choices": [{"index": 0, "message": message}]})


def test_an_outlet_sees_the_conversation_and_changes_the_answer() -> None:
    request = ask(options={"filter_ids": ["f"], "chat_id": "c", "session_id": "s"})
    exchange = exchange_of(request)
    answer = completion("old")
    form = exchange.finished(answer)
    assert [message["content"] for message in form["messages"]] == ["hi", "old"]
    assert (form["model"], form["chat_id"], form["session_id"], form["id"]) == ("m", "c", "s", "")
    assert form["filter_ids"] == ["f"]
    form["messages"][-1]["content"] = "new"
    exchange.take_outlet_result(form, answer)
    assert answer.body["choices"][0]["message"] == {"role": "assistant", "content": "new"}
    assert exchange.finished(answer) is form


def test_an_outlet_does_not_see_what_was_put_into_the_question() -> None:
    request = ask()
    exchange = exchange_of(request)
    request.body["messages"][0]["content"] = "context and hi"
    assert exchange.finished(completion("old"))["messages"][0]["content"] == "hi"


@pytest.mark.parametrize("messages", [[], None, [{}], [{"content": 7}]])
def test_an_outlet_that_leaves_no_content_changes_nothing(messages: Any) -> None:
    exchange = exchange_of(ask())
    answer = completion("old")
    exchange.take_outlet_result({"messages": messages}, answer)
    assert answer.body["choices"][0]["message"]["content"] == "old"


def test_an_answer_without_choices_is_empty() -> None:
    exchange = exchange_of(ask())
    assert exchange.finished(Completion(body={}))["messages"][-1]["content"] == ""


def test_why_a_value_is_no_json_is_told() -> None:
    assert json_problem({"a": [1, None]}) is None
    assert "JSON" in (json_problem({"a": object()}) or "")
