"""Errors of a tool server: sentences that name the server and contain none of its secrets."""

from dataclasses import dataclass, field
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.upstream.http.client import TransportError
from gatewayd.upstream.sources.failures import REDACTED

MIN_SECRET_CHARACTERS: Final = 8
"""Minimum length of a secret that is removed from texts; a shorter one may occur in ordinary text."""

MAX_TEXT_CHARACTERS: Final = 2000
"""Maximum number of characters of a text of a server."""

PASSED_KINDS: Final = frozenset(
    {ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.UPSTREAM_FAILED, ErrorKind.TIMEOUT}
)


@dataclass(frozen=True, slots=True)
class ServerFailures:
    """Factory of the errors of one tool server; `secrets` never appear in one."""

    server: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def error(self, sentence: str, kind: ErrorKind = ErrorKind.UPSTREAM_FAILED) -> GatewayError:
        """Return the error "cannot use tool server ...: <sentence>"."""
        return GatewayError(kind, f"cannot use tool server {self.server!r}: {self.line(sentence)}")

    def from_transport(self, error: TransportError) -> GatewayError:
        """Return the error for a failed connection."""
        kind = error.kind if error.kind in PASSED_KINDS else ErrorKind.UPSTREAM_FAILED
        return self.error(error.sentence, kind)

    def line(self, text: str) -> str:
        """Return a text of the server as one line of limited length without secrets."""
        return " ".join(self.clean(text).split())

    def clean(self, text: str) -> str:
        """Return a text of the server, of limited length and without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}..."

    def redacted(self, data: bytes) -> bytes:
        """Return bytes of an answer with secrets removed."""
        for secret in self.secrets:
            data = data.replace(secret.encode(), REDACTED.encode())
        return data


def failures_of(server: ToolServer) -> ServerFailures:
    """Return the error factory of a server; its key and the values of its headers are secrets."""
    values = [server.key, *(value for value in server.headers.values() if "{{" not in value)]
    return ServerFailures(server.id, tuple(value for value in values if len(value) >= MIN_SECRET_CHARACTERS))
