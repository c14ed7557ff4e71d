import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from gatewayd.plugins.isolation.calls import (
    METADATA,
    CallActor,
    OpenCall,
    read_call,
    render_call,
    render_plugin,
    take_metadata,
)
from gatewayd.plugins.runtime.context import RequestFacts
from tests.fakes.plugins.memory import plugin_of, scope_of

ALL = frozenset(
    {
        *("body", "__user__", "__metadata__", "__request__", "__tools__", "__model__", "__files__"),
        *("__messages__", "__oauth_token__"),
    }
)


def lent(number: int) -> Callable[..., Any]:
    return lambda: number


def across(call: OpenCall, names: frozenset[str], arguments: dict[str, Any]) -> Any:
    """Return a call as the process reads it."""
    told = json.loads(json.dumps(render_call(call, names, arguments, {"loud": True})))
    return read_call(call.number, told, lent)


def test_a_call_is_what_it_was() -> None:
    scope = scope_of(
        facts=RequestFacts(headers=(("a", "b"),), client="1.2.3.4"),
        metadata={"a": 1},
        model={"id": "m"},
        files=[{"id": "f"}],
        messages=[{"role": "user"}],
        tools={"t": {"callable": print, "spec": {"name": "t"}}},
        task="title_generation",
        oauth_token={"access_token": "at"},
    )
    call = OpenCall(7, scope, 0)
    read = across(call, ALL, {"body": {"x": 1, "metadata": scope.metadata}, "other": object()})
    assert isinstance(read.scope.actor, CallActor)
    assert (read.scope.actor.call, read.scope.actor.user) == (7, scope.actor.user)
    for name in ("target", "facts", "metadata", "model", "files", "messages", "task", "oauth_token"):
        assert getattr(read.scope, name) == getattr(scope, name), name
    assert read.arguments == {"body": {"x": 1, "metadata": {"a": 1}}}
    assert read.arguments["body"]["metadata"] is read.scope.metadata
    assert read.user_valves == {"loud": True}
    assert read.scope.tools["t"]["spec"] == {"name": "t"}
    assert read.scope.tools["t"]["callable"]() == 0
    assert call.callables == [print]


def test_no_more_is_told_than_the_method_names() -> None:
    secret = RequestFacts(headers=(("authorization", "Bearer sk-1"),))
    scope = scope_of(facts=secret, metadata={"a": 1}, model={"id": "m"}, files=[1], messages=[2])
    told = render_call(OpenCall(1, scope, 0), frozenset({"body"}), {"body": {}}, {})
    assert set(told) == {"user", "target", "arguments", "sharing", "user_valves", "task"}
    assert set(told["user"]) == {"id", "email", "name", "role"}


def test_metadata_that_are_not_those_of_the_request_stay_where_they_are() -> None:
    scope = scope_of(metadata={"a": 1})
    read = across(OpenCall(1, scope, 0), frozenset({"body"}), {"body": {"metadata": {"b": 2}}})
    assert read.arguments == {"body": {"metadata": {"b": 2}}}
    assert read.scope.metadata == {}


def test_changes_of_the_metadata_are_found_and_taken() -> None:
    scope = scope_of(metadata={"kept": [1], "changed": [1], "gone": 1})
    kept = scope.metadata["kept"]
    read = across(OpenCall(1, scope, 0), frozenset({"__metadata__"}), {})
    read.scope.metadata["changed"].append(2)
    read.scope.metadata["new"] = 3
    del read.scope.metadata["gone"]
    changes = read.changes()[METADATA]
    assert changes == {"changed": {"changed": [1, 2], "new": 3}, "removed": ["gone"]}
    take_metadata(scope.metadata, changes)
    assert across(OpenCall(1, scope, 0), frozenset({"__metadata__"}), {}).changes() == {}
    assert scope.metadata == {"kept": [1], "changed": [1, 2], "new": 3}
    assert scope.metadata["kept"] is kept


@pytest.mark.parametrize(
    "changes", [None, [], {}, {"changed": {}, "removed": 1}, {"changed": 1, "removed": []}]
)
def test_malformed_changes_are_refused(changes: Any) -> None:
    with pytest.raises(ValueError, match="changes"):
        take_metadata({}, changes)


def test_a_plugin_is_told_without_what_is_not_its_own() -> None:
    plugin = plugin_of("p", "class Pipe: ...", valves={"a": 1})
    told = render_plugin(plugin)
    assert (told["id"], told["family"], told["kind"], told["valves"]) == ("p", "function", "pipe", {"a": 1})
    assert set(told) < {field.name for field in dataclasses.fields(plugin)}
    assert "grants" not in told
