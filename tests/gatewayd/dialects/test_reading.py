import pytest

from gatewayd.dialects.reading import json_schema, parse_arguments, parse_data_url, read_list, read_text
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


@pytest.mark.parametrize("url", ["data:image/png,abc", "data:image/png;base64", "abc", None, 3])
def test_bad_data_urls(url):
    with pytest.raises(GatewayError, match="cannot read x"):
        parse_data_url(url, "x")


def test_json_schema():
    assert json_schema({"type": "json_object"}) is None
    assert json_schema({"type": "json_schema", "json_schema": "x"}) is None
    assert json_schema("x") is None
