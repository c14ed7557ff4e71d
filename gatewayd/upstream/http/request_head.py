"""Request heads: request line and headers, checked and encoded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from yarl import URL

from gatewayd import __version__
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.connector import UrlOrigin
from gatewayd.upstream.http.errors import TransportError
from gatewayd.urls import split_url

DEFAULT_HEADERS = {"User-Agent": f"gatewayd/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
"""Default headers, which the caller can replace."""

CONNECTION_HEADERS = {
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
"""Headers about the framing of messages and the connection; only the client sets them."""

_WITH_BODY = {"POST", "PUT", "PATCH"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t -~\x80-\ud7ff\ue000-\U0010ffff]*")
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Head of one request: `lines` without the length of the body and the final blank line."""

    origin: UrlOrigin
    lines: bytes
    has_answer_body: bool
    sends_length: bool

    def open(self, length: int | None) -> bytes:
        """Return the head of a request whose body follows: `length` bytes, or chunks."""
        framing = b"Transfer-Encoding: chunked" if length is None else b"Content-Length: %d" % length
        return b"%b%b\r\n\r\n" % (self.lines, framing)

    def join(self, body: bytes | None) -> bytes:
        """Return the head of a request with this body."""
        if body is None and not self.sends_length:
            return self.lines + b"\r\n"
        return b"%bContent-Length: %d\r\n\r\n" % (self.lines, len(body or b""))


def build_head(method: str, url: str, headers: Mapping[str, str]) -> RequestHead:
    """Return the head with these headers and those that HTTP requires; raises TransportError."""
    if not _TOKEN.fullmatch(method):
        raise _refuse("the method of the request is invalid")
    parsed = _parse(url)
    fields = {"Host": parsed.host_port_subcomponent or "", **DEFAULT_HEADERS}
    given = {name.lower() for name in headers}
    lines = [f"{method} {parsed.raw_path_qs} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in fields.items() if name.lower() not in given]
    lines += [_line(name, value) for name, value in headers.items()]
    return RequestHead(
        origin=UrlOrigin(parsed.raw_host or "", parsed.port or 0, parsed.scheme == "https"),
        lines=("\r\n".join(lines) + "\r\n").encode(),
        has_answer_body=method != "HEAD",
        sends_length=method in _WITH_BODY,
    )


def _parse(url: str) -> URL:
    refusal = _refuse("its URL is invalid")
    if _UNSENDABLE.search(url):
        raise refusal
    try:
        # URL() encodes the host in time quadratic in its length.
        split_url(url)
        parsed = URL(url)
        is_usable = parsed.scheme in {"http", "https"} and bool(parsed.raw_host) and bool(parsed.port)
    except ValueError as error:
        raise refusal from error
    if not is_usable or parsed.user is not None or parsed.password is not None:
        raise refusal
    return parsed


def _line(name: str, value: str) -> str:
    if not _TOKEN.fullmatch(name) or name.lower() in CONNECTION_HEADERS:
        raise _refuse(f"a header named {name!r} cannot be sent")
    if not _VALUE.fullmatch(value):
        raise _refuse(f"the value of header {name!r} has characters that cannot be sent")
    return f"{name}: {value.strip()}"


def _refuse(sentence: str) -> TransportError:
    return TransportError(ErrorKind.INVALID_REQUEST, sentence)
