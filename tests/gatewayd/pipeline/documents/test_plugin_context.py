"""Tests for gatewayd.pipeline.documents.plugin_context."""

from typing import Any

import pytest

from gatewayd.events.records import EventTarget
from gatewayd.pipeline.documents.plugin_context import make_scope
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugins.runtime.call_depth import at_depth
from gatewayd.plugins.runtime.context import CallScope, RequestFacts
from tests.fakes.providers.models import make_actor, make_model


def scoped(**changes: Any) -> CallScope:
    messages = [{"role": "user", "content": "hi"}]
    request = ChatRequest(model="m", body={"model": "m", "messages": messages}, stream=False, **changes)
    return make_scope(request, make_model("m"), None, make_actor("u1"))


def test_without_ids_nothing_is_aimed_at() -> None:
    scope = scoped()
    assert scope.target == EventTarget("u1")
    assert (scope.metadata["chat_id"], scope.metadata["message_id"]) == ("", None)
    assert scope.metadata["session_id"] is None
    assert scope.metadata["features"] == {}
    assert scope.files is None
    assert scope.task is None


def test_ids_and_fields_of_the_request_are_told() -> None:
    options = {
        "chat_id": "c1",
        "id": "m1",
        "session_id": "s1",
        "filter_ids": ["f1"],
        "tool_ids": ["t1"],
        "features": {"web_search": True},
        "variables": {"{{A}}": "b"},
        "params": {"function_calling": "native", "temperature": 1},
        "user_message": {"id": "um", "content": "hi"},
    }
    files = [{"type": "file", "id": "f"}]
    facts = RequestFacts(headers=(("User-Agent", "curl"),))
    scope = scoped(options=options, files=files, facts=lambda: facts)
    assert scope.target == EventTarget("u1", "c1", "m1", "s1")
    told = {name: scope.metadata[name] for name in ("filter_ids", "tool_ids", "features", "files", "params")}
    assert told == {
        "filter_ids": ["f1"],
        "tool_ids": ["t1"],
        "features": {"web_search": True},
        "files": files,
        "params": {"function_calling": "native"},
    }
    assert scope.metadata["user_agent"] == "curl"
    assert scope.metadata["user_message_id"] == "um"
    assert scope.metadata["model"] is scope.model
    assert scope.files == files
    assert scope.messages == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("odd", [7, "x", ["x"], None, {"a": 1}])
def test_odd_values_count_as_absent(odd: Any) -> None:
    names = ("chat_id", "id", "filter_ids", "features", "variables", "params", "user_message")
    scope = scoped(options=dict.fromkeys(names, odd))
    assert isinstance(scope.target.chat_id, str)
    assert isinstance(scope.metadata["features"], dict)
    assert isinstance(scope.metadata["variables"], dict)
    assert all(isinstance(item, str) for item in scope.metadata["filter_ids"])


def test_a_request_of_a_plugin_is_told_its_level() -> None:
    with at_depth(3):
        assert scoped().level == 3
    assert scoped().level == 0
