import orjson
import pytest

from gatewayd.encryption import ENCRYPTED_PREFIX
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine.encryption import ValveCipher

VALUES = {"key": "secret ü", "n": None}


def test_without_a_secret_values_are_stored_as_they_are() -> None:
    assert orjson.loads(ValveCipher(None).encode(VALUES)) == VALUES
    assert ValveCipher(None).decode(ValveCipher(None).encode(VALUES), "x") == VALUES


def test_with_a_secret_they_are_sealed_each_time_anew() -> None:
    seal = ValveCipher(b"k")
    first, second = seal.encode(VALUES), seal.encode(VALUES)
    assert first != second
    assert "secret" not in first
    assert orjson.loads(first).startswith(ENCRYPTED_PREFIX)
    assert seal.decode(first, "x") == seal.decode(second, "x") == VALUES


def test_what_is_switched_off_still_opens() -> None:
    off = ValveCipher(b"k", encrypt=False)
    assert off.decode(ValveCipher(b"k").encode(VALUES), "x") == VALUES
    assert orjson.loads(off.encode(VALUES)) == VALUES
    assert ValveCipher(b"k").decode(off.encode(VALUES), "x") == VALUES


@pytest.mark.parametrize("secret", [b"other", None])
def test_another_secret_or_none_opens_nothing(secret: bytes | None) -> None:
    with pytest.raises(GatewayError, match="cannot read the valves of tool x") as caught:
        ValveCipher(secret).decode(ValveCipher(b"k").encode(VALUES), "tool x")
    assert (caught.value.kind, caught.value.code) == (ErrorKind.NOT_CONFIGURED, "valves_sealed")


def test_what_is_damaged_opens_nothing() -> None:
    sealed = orjson.loads(ValveCipher(b"k").encode(VALUES))
    for text in (sealed[:-8], ENCRYPTED_PREFIX, "no mark", ""):
        with pytest.raises(GatewayError, match="cannot read the valves of tool x"):
            ValveCipher(b"k").decode(orjson.dumps(text).decode(), "tool x")


def test_what_cannot_be_stored_is_refused_sealed_or_not() -> None:
    for secret in (b"k", None):
        with pytest.raises(GatewayError) as caught:
            ValveCipher(secret).encode({"a": "\x00"})
        assert caught.value.param == "valves"
