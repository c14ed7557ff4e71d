from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.isolation.messages import (
    LIMITS,
    MAX_ERROR_CHARACTERS,
    MAX_MESSAGE_BYTES,
    MAX_REFUSAL_CHARACTERS,
    PipeData,
    pack,
    pack_at_once,
    read_error,
    read_failure_details,
    render_error,
    render_failure,
    unpack,
    unpack_at_once,
)
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError


async def test_a_payload_goes_both_ways() -> None:
    payload = PipeData({"a": [1, None, "å"]}, bytes(range(256)))
    assert unpack_at_once(*await pack(payload)) == payload
    assert await unpack(*pack_at_once(payload)) == payload
    assert await unpack({}, b"") == PipeData()


async def test_what_the_gateway_has_and_is_no_json_becomes_a_text() -> None:
    value = {"m": MappingProxyType({1: (2,)}), "p": Path("/x"), "s": {3}}
    assert unpack_at_once(*await pack(PipeData(value))).value == {"m": {"1": [2]}, "p": "/x", "s": [3]}


@pytest.mark.parametrize(
    ("header", "blob"),
    [
        ({"attached": 5}, b"null"),
        ({"attached": -1}, b"null"),
        ({"attached": "1"}, b"null"),
        ({}, b"{"),
        ({}, b"[" * (LIMITS.depth + 1) + b"]" * (LIMITS.depth + 1)),
    ],
)
async def test_a_malformed_message_is_refused(header: dict[str, Any], blob: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        await unpack(header, blob)


def test_what_is_too_large_does_not_leave_the_process() -> None:
    with pytest.raises(ValueError, match="more than the"):
        pack_at_once(PipeData(None, bytes(MAX_MESSAGE_BYTES)))
    with pytest.raises(TypeError):
        pack_at_once(PipeData(object()))


def test_a_failure_is_told_and_read() -> None:
    failed = FailureDetails("text", "ValueError", 429, 7, "code", 3, ("pipe q",))
    failure = PluginError("pipe", "p", failed, kind=ErrorKind.TIMEOUT)
    assert read_failure_details(render_failure(failure)["failed"]) == (failed, ErrorKind.TIMEOUT)
    long = PluginError("pipe", "p", FailureDetails("x" * 100_000))
    assert len(render_failure(long)["failed"]["text"]) <= MAX_ERROR_CHARACTERS


@pytest.mark.parametrize(
    "change", [{"text": 1}, {"status": "1"}, {"line": True}, {"names": 1}, {"kind": "none"}, {"names": [1]}]
)
def test_a_malformed_failure_is_refused(change: dict[str, Any]) -> None:
    told = render_failure(PluginError("pipe", "p", FailureDetails("text")))["failed"]
    with pytest.raises((ValueError, TypeError)):
        read_failure_details({**told, **change})


def test_an_error_is_told_and_read() -> None:
    error = GatewayError(ErrorKind.CONFLICT, "no" * MAX_REFUSAL_CHARACTERS, param="p", code="c")
    read = read_error(render_error(error)["error"])
    assert (read.kind, read.param, read.code) == (ErrorKind.CONFLICT, "p", "c")
    assert len(read.message) <= MAX_REFUSAL_CHARACTERS
