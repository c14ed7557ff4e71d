from functools import partial

import pytest

from gatewayd.dialects.anthropic.source import to_request as to_anthropic
from gatewayd.dialects.fields import (
    check_arguments,
    json_schema,
    parse_arguments,
    parse_data_url,
    read_list,
    read_text,
)
from gatewayd.dialects.ollama.dialect import parse_chat
from gatewayd.dialects.ollama.source import to_request as to_ollama
from gatewayd.errors import GatewayError


def test_read_list():
    assert read_list({"a": [1]}, "a") == [1]
    assert read_list({"a": None}, "a") == []
    with pytest.raises(GatewayError, match="cannot read a: it is not a list"):
        read_list({"a": {}}, "a")
    with pytest.raises(GatewayError, match=r"cannot read b\.a: it is not a list"):
        read_list({"a": "x"}, "a", "b.a")


def test_read_text():
    assert read_text({"a": "b"}, "a", "a") == "b"
    assert read_text({"a": None}, "a", "a") == ""
    with pytest.raises(GatewayError, match=r"cannot read b\.a: it is not a text"):
        read_text({"a": 1}, "a", "b.a")


def test_arguments():
    assert parse_arguments(None, "x") == {}
    assert parse_arguments({"a": 1}, "x") == {"a": 1}
    with pytest.raises(GatewayError, match="cannot read x"):
        parse_arguments("{", "x")


def test_arguments_of_all_calls_of_a_request_are_bounded():
    def said(arguments, count=1):
        calls = [{"id": "c", "function": {"name": "f", "arguments": arguments}}] * count
        return [{"role": "user", "content": "," * 500_000}, {"role": "assistant", "tool_calls": calls}, 3]

    check_arguments(said("[" + "1," * 50_000 + "1]", 3))
    check_arguments([{"tool_calls": [None, {"function": 3}, {"function": {"arguments": {"a": 1}}}]}])
    for messages in (said('{"a":[' + "[]," * 5_000_000 + "[]]}"), said("[" + "1," * 50_000 + "1]", 5)):
        with pytest.raises(GatewayError, match="arguments of their tool calls hold over") as caught:
            check_arguments(messages)
        assert caught.value.param == "messages"
        for converted in (to_anthropic, partial(to_ollama, stream=False), parse_chat):
            with pytest.raises(GatewayError, match="arguments of their tool calls hold over"):
                converted({"model": "m", "messages": messages[:2]})


@pytest.mark.parametrize("url", ["data:image/png,abc", "data:image/png;base64", "abc", None, 3])
def test_bad_data_urls(url):
    with pytest.raises(GatewayError, match="cannot read x"):
        parse_data_url(url, "x")


def test_json_schema():
    assert json_schema({"type": "json_object"}) is None
    assert json_schema({"type": "json_schema", "json_schema": "x"}) is None
    assert json_schema("x") is None
