"""Tests for gatewayd.pipeline.documents.presets."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gatewayd.catalog.records import ModelRecord
from gatewayd.pipeline.documents.presets import (
    apply_record,
    document_references,
    is_altering,
    parse_custom_params,
)
from gatewayd.pipeline.records import ChatRequest
from tests.fakes.providers.models import make_actor

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


def applied(request: ChatRequest, *, params: dict[str, Any] | None = None, **meta: Any) -> ChatRequest:
    record = ModelRecord("m", "u1", "M", "base", params=params or {}, meta=meta)
    apply_record(request, record, make_actor(), lambda: NOW)
    return request


def ask(**body: Any) -> ChatRequest:
    messages = [{"role": "user", "content": "hello"}]
    return ChatRequest(model="m", body={"model": "m", "messages": messages, **body}, stream=False)


def test_the_system_prompt_goes_before_what_the_caller_says() -> None:
    request = ask(messages=[{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}])
    applied(request, params={"system": "It is {{CURRENT_DATE}}, {{USER_NAME}} asks {{WHAT}}."})
    text = request.body["messages"][0]["content"]
    assert text == f"It is 2026-03-01, {make_actor().user.name} asks {{{{WHAT}}}}.\nbe brief"


def test_without_a_system_message_one_is_made() -> None:
    request = applied(ask(), params={"system": "be brief"})
    assert [message["role"] for message in request.body["messages"]] == ["system", "user"]


def test_parameters_of_the_record_win_and_those_of_the_gateway_stay_here() -> None:
    request = ask(temperature=1.0)
    applied(request, params={"temperature": 0.2, "stream_response": True, "top_p": None, "model": "x"})
    assert request.body["temperature"] == 0.2
    assert request.body["model"] == "m"
    assert {"top_p", "stream_response"}.isdisjoint(request.body)


def test_custom_parameters_may_be_json_text() -> None:
    request = applied(ask(), params={"custom_params": {"stop": '["a"]', "user": "no json"}})
    assert (request.body["stop"], request.body["user"]) == (["a"], "no json")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"type": "enabled"}', {"type": "enabled"}),
        ("0.25", 0.25),
        ("true", True),
        ("null", None),
        ('"7"', "7"),
        ("{half", "{half"),
        ("NaN", "NaN"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("[" * 2000 + "]" * 2000, "[" * 2000 + "]" * 2000),
        ("[" + "1," * 300_000 + "1]", "[" + "1," * 300_000 + "1]"),
        (3, 3),
    ],
)
def test_custom_parameter_that_is_json_text_is_parsed(text: Any, value: Any) -> None:
    assert parse_custom_params({"x": text}) == {"x": value}


def test_the_mode_of_tools_is_the_records_unless_the_request_names_one() -> None:
    assert applied(ask(), params={"function_calling": "legacy"}).options["params"] == {
        "function_calling": "legacy"
    }
    request = ask()
    request.options["params"] = {"function_calling": "native"}
    assert applied(request, params={"function_calling": "legacy"}).options["params"] == {
        "function_calling": "native"
    }


def test_documents_of_the_record_come_after_those_of_the_request_and_once() -> None:
    request = ask()
    request.files = [{"type": "collection", "id": "k1"}]
    applied(request, knowledge=[{"id": "k1", "name": "one"}, {"id": "f1", "type": "file"}, 3])
    assert request.files == [{"type": "collection", "id": "k1"}, {"type": "file", "id": "f1"}]
    assert request.model_files == [{"type": "file", "id": "f1"}]


def test_older_forms_of_references_are_known() -> None:
    found = document_references(
        [{"collection_name": "a"}, {"collection_names": ["b", 1, "c"]}, {"name": "nothing"}]
    )
    assert [item["id"] for item in found] == ["a", "b", "c"]
    assert not document_references("nonsense")


def test_a_request_in_another_dialect_is_kept_only_when_nothing_changes() -> None:
    request = ask()
    request.native = {"model": "m"}
    assert applied(request, knowledge=[]).native == {"model": "m"}
    assert applied(request, params={"temperature": 0}).native is None


@pytest.mark.parametrize(
    ("sent", "params"),
    [
        ({"max_completion_tokens": 9, "Max_Tokens": 9}, {"max_tokens": 1}),
        ({"options": {"num_predict": 9, "TOP_K": 9, "seed": 3}}, {"max_tokens": 1, "top_k": 2}),
        ({"think": True, "thinking": {"type": "enabled"}}, {"reasoning_effort": "none"}),
        ({"temperature": 2, "format": "json"}, {"temperature": 0, "response_format": {"type": "text"}}),
    ],
)
def test_parameter_of_the_record_wins_under_every_name(sent: dict[str, Any], params: dict[str, Any]) -> None:
    request = ask()
    request.body |= sent
    body = dict(applied(request, params=params).body)
    kept = {"options": {"seed": 3}} if "options" in sent else {}
    assert {name: body[name] for name in body if name not in ("model", "messages")} == {**params, **kept}


def test_record_alters_requests_only_by_what_reaches_the_model() -> None:
    def record(params: dict[str, Any], **meta: Any) -> ModelRecord:
        return ModelRecord("m", "u1", "M", params=params, meta=meta)

    assert not is_altering(None)
    assert not is_altering(record({"stream_response": True, "system": " "}, description="d", knowledge=[]))
    for altering in (
        record({"system": "s"}),
        record({"top_k": 1}),
        record({}, knowledge=[{"id": "k"}]),
        record({}, toolIds=["t"]),
    ):
        assert is_altering(altering)
