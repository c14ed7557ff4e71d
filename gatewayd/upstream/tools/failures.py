"""What went wrong with a tool server, as a sentence that names it and holds none of its secrets."""

from dataclasses import dataclass, field
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.plugins.servers.records import ToolServer
from gatewayd.upstream.http.client import TransportError
from gatewayd.upstream.sources.failures import REDACTED

MIN_SECRET_CHARACTERS: Final = 8
"""Characters of a secret that is searched for; a shorter one would be found in innocent text."""

MAX_TEXT_CHARACTERS: Final = 2000
"""Characters of a server's own words that are kept."""

PASSED_KINDS: Final = frozenset(
    {ErrorKind.UPSTREAM_UNREACHABLE, ErrorKind.UPSTREAM_FAILED, ErrorKind.TIMEOUT}
)


@dataclass(frozen=True, slots=True)
class ServerFailures:
    """Makes the errors of one tool server; `secrets` must never appear in one."""

    server: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def error(self, sentence: str, kind: ErrorKind = ErrorKind.UPSTREAM_FAILED) -> GatewayError:
        """Return the error "cannot use tool server ...: <sentence>"."""
        return GatewayError(kind, f"cannot use tool server {self.server!r}: {self.line(sentence)}")

    def from_transport(self, error: TransportError) -> GatewayError:
        """Return the error for a connection that failed."""
        kind = error.kind if error.kind in PASSED_KINDS else ErrorKind.UPSTREAM_FAILED
        return self.error(error.sentence, kind)

    def line(self, text: str) -> str:
        """Return foreign text as one bounded line without secrets."""
        return " ".join(self.clean(text).split())

    def clean(self, text: str) -> str:
        """Return foreign text, bounded and without secrets."""
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return text if len(text) <= MAX_TEXT_CHARACTERS else f"{text[:MAX_TEXT_CHARACTERS]}..."

    def redacted(self, data: bytes) -> bytes:
        """Return bytes of an answer without secrets."""
        for secret in self.secrets:
            data = data.replace(secret.encode(), REDACTED.encode())
        return data


def failures_of(server: ToolServer) -> ServerFailures:
    """Return what makes the errors of a server; its key and the values of its headers are secrets."""
    values = [server.key, *(value for value in server.headers.values() if "{{" not in value)]
    return ServerFailures(server.id, tuple(value for value in values if len(value) >= MIN_SECRET_CHARACTERS))
