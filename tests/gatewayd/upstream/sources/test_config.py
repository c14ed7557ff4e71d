import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind


def make(**fields):
    return ProviderConfig(
        **{"name": "acme", "kind": SourceKind.OPENAI, "base_url": "https://acme.test/v1", **fields}
    )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"base_url": "acme.test/v1"}, "base_url"),
        ({"base_url": "ftp://acme.test"}, "base_url"),
        ({"base_url": "https://"}, "base_url"),
        ({"base_url": "https://u:p@acme.test"}, "base_url"),
        ({"base_url": "https://acme.test/?key=x"}, "base_url"),
        ({"base_url": "https://acme.test/#x"}, "base_url"),
        ({"base_url": "http://[::1"}, "base_url"),
        ({"base_url": "http://" + "漢" * 100_000}, "base_url"),
        ({"base_url": "http://a:99999999"}, "base_url"),
        ({"key": "a b"}, "key"),
        ({"key": "a\r\nX: y"}, "key"),
        ({"key": "é"}, "key"),
        ({"key": ""}, "key"),
        ({"connections": 0}, "connections"),
        ({"passes_batches": True, "kind": SourceKind.OLLAMA}, "batches"),
        ({"passes_batches": True, "key": "hunter2", "keys": ("hunter3",)}, "batches"),
    ],
)
def test_bad_values_name_the_field_and_never_the_key(fields, param):
    with pytest.raises(GatewayError) as caught:
        make(**fields)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST
    assert caught.value.param == param
    assert param in caught.value.message
    assert "u:p" not in caught.value.message


def test_the_key_is_not_in_the_representation():
    assert "hunter2" not in repr(make(key="hunter2"))


def test_a_suffix_that_the_source_adds_is_left_out():
    assert make(base_url="https://acme.test/v1/").without_suffix("/v1").base_url == "https://acme.test"
    assert make().without_suffix("/api").base_url == "https://acme.test/v1"
