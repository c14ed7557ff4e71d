"""Tests for gatewayd.upstream.tools.failures."""

from gatewayd.errors import ErrorKind
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.upstream.http.client import TransportError
from gatewayd.upstream.tools.failures import MAX_TEXT_CHARACTERS, failures_of

SERVER = ToolServer(
    "s", "S", "http://x", key="very-secret-key", headers={"A": "other-secret", "B": "{{CHAT_ID}}", "C": "1"}
)


def test_errors_name_the_server_and_no_secret() -> None:
    error = failures_of(SERVER).error("it said\n very-secret-key,  other-secret and 1 {{CHAT_ID}}")
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    expected = "cannot use tool server 's': it said [redacted], [redacted] and 1 {{CHAT_ID}}"
    assert error.message == expected


def test_texts_are_bounded() -> None:
    assert len(failures_of(SERVER).clean("x" * 100_000)) == MAX_TEXT_CHARACTERS + 3


def test_bytes_lose_secrets() -> None:
    assert failures_of(SERVER).redacted(b'{"k":"very-secret-key"}') == b'{"k":"[redacted]"}'
    assert failures_of(ToolServer("s", "S", "http://x", key="a")).redacted(b"abc") == b"abc"


def test_kinds_of_connections_that_fail() -> None:
    failures = failures_of(SERVER)
    for kind in (ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.TIMEOUT):
        assert failures.from_transport(TransportError(kind, "no")).kind is kind
    # A request that cannot be sent is not the fault of who asked.
    error = failures.from_transport(TransportError(ErrorKind.INVALID_REQUEST, "its URL is invalid"))
    assert error.kind is ErrorKind.UPSTREAM_FAILED
