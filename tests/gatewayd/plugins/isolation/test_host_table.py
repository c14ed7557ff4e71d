import contextlib
import time
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.interfaces import HostUpload, PluginHost
from gatewayd.plugins.isolation.host_table import PARTS, SCOPE, find_method
from gatewayd.plugins.records import PluginFamily


def test_every_part_of_the_host_is_there() -> None:
    assert {*PARTS, "data_dir", "secret_key"} == set(PluginHost.__dataclass_fields__)


def test_arguments_are_read_as_the_method_takes_them() -> None:
    assert find_method("plugins", "find").read({"family": "tool", "plugin_id": "x"}) == {
        "family": PluginFamily.TOOL,
        "plugin_id": "x",
    }
    upload = {
        "name": "a",
        "content": b"\xff",
        "content_type": None,
        "meta": None,
        "process": False,
        "id": None,
    }
    stored = find_method("files", "store").read({"user_id": "u", "upload": upload})
    assert stored["upload"] == HostUpload("a", b"\xff")
    method = find_method("completions", "run")
    assert method.has_scope
    given = {"user_id": "u", "body": {"a": 1}, "whole_pipeline": True}
    assert method.read(given) == given
    assert list(method.signature.parameters) == [*given, SCOPE]


@pytest.mark.parametrize(
    "arguments",
    [None, [], {}, {"family": "none", "plugin_id": "x"}, {"family": "tool", "plugin_id": 1}, {"more": 1}],
)
def test_other_arguments_are_refused(arguments: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        find_method("plugins", "find").read(arguments)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


@pytest.mark.parametrize(
    ("part", "name"),
    [("users", "__init__"), ("users", "none"), ("secret_key", "upper"), (["users"], 1), ("plugins", "_x")],
)
def test_nothing_else_may_be_asked(part: Any, name: Any) -> None:
    with pytest.raises(GatewayError) as caught:
        find_method(part, name)
    assert caught.value.kind is ErrorKind.NOT_FOUND


MANY = {str(number): 0 for number in range(300_000)}


@pytest.mark.parametrize(
    ("part", "name", "arguments"),
    [
        ("files", "set_data", MANY),
        ("files", "store", {"user_id": "u", "upload": MANY}),
        ("completions", "embed", {"texts": [0] * 300_000}),
        ("files", "set_data", {"file_id": 1, "data": MANY}),
    ],
)
def test_a_large_refusal_takes_no_time(part: str, name: str, arguments: Any) -> None:
    method = find_method(part, name)
    with contextlib.suppress(GatewayError):
        method.read({})
    began = time.process_time()
    with pytest.raises(GatewayError):
        method.read(arguments)
    assert time.process_time() - began < 0.1
