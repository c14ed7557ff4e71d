"""Base address of a SCIM service, parsed from an argument."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit  # noqa: TID251

from gatewayctl.prompts import usage

BASE_PATH: Final = "/api/v1/scim/v2"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Base:
    """Base address of the service; `path` has no slash at its end."""

    is_secure: bool
    host: str
    port: int
    path: str

    @property
    def url(self) -> str:
        """The address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.is_secure else 80
        port = "" if self.port == usual else f":{self.port}"
        return f"{'https' if self.is_secure else 'http'}://{host}{port}{self.path}"

    @property
    def is_open(self) -> bool:
        """Whether the token would cross a network unencrypted."""
        return not self.is_secure and self.host not in LOOPBACK


def read_base(text: str) -> Base:
    """Return the base address; the address of a site gets the path of the gateway's SCIM service."""
    parts = urlsplit(text.strip())
    try:
        port = parts.port
    except ValueError as error:
        raise _refused(text, "its port is no number") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _refused(text, "expected https://HOST or the whole base address")
    if parts.username is not None or parts.password is not None:
        raise _refused(text, "it has a user name or password in it")
    if parts.query or parts.fragment:
        raise _refused(text, "it has more than a path")
    is_secure = parts.scheme == "https"
    path = parts.path.rstrip("/")
    if not path.lower().endswith("/scim/v2"):
        path += BASE_PATH
    return Base(is_secure, parts.hostname, port or (443 if is_secure else 80), path)


def _refused(text: str, reason: str) -> Exception:
    return usage(f"cannot use the address {text!r}: {reason}", param="URL")
