"""Replies with stored files, whole or in ranges, with headers that keep browsers from running them."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from aiohttp import web

from gatewayd.http.responses.stored_bytes import StoredBytesReply
from gatewayd.ingest.records import BlobContent

PDF_TYPE: Final = "application/pdf"
TEXT_TYPE: Final = "text/plain"
UNKNOWN_TYPE: Final = "application/octet-stream"

# Types that a browser runs, or may mistake for such types.
_RUN: Final = re.compile(
    r"[/+]xml(?:-|\Z)|html|svg|/(?:x-)?xsl|(?:java|ecma|live|vb|/(?:x-)?j)script|\Atext/css\Z"
    r"|\A(?:multipart|message)/"
)
_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_CHARSET: Final = re.compile(r";\s*charset=\"?([A-Za-z0-9._:-]{1,40})", re.IGNORECASE)

# Browsers show no PDF in a sandbox; their PDF viewer isolates it.
_PDF_POLICY: Final = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'"
_POLICY: Final = "sandbox; default-src 'none'"


def file_reply(
    content: BlobContent, name: str, declared: str | None, *, attachment: bool = False
) -> web.StreamResponse:
    """Return the reply with stored bytes, with ranges and conditions (RFC 9110, 13 and 14).

    `declared` is the media type of the upload. `attachment` makes browsers save the file.
    """
    headers = headers_of(name, declared, attachment=attachment)
    if content.path is None:
        return StoredBytesReply(content, headers)
    return web.FileResponse(content.path, headers=headers)


def headers_of(name: str, declared: str | None, *, attachment: bool = False) -> Mapping[str, str]:
    """Return the headers that tell a browser how to treat a file."""
    shown = safe_media_type(declared)
    kind = declared_type(declared)
    headers = {
        "Content-Type": shown,
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": _PDF_POLICY if kind == PDF_TYPE else _POLICY,
        "Cache-Control": "private, no-cache",
    }
    if attachment or kind not in {PDF_TYPE, TEXT_TYPE}:
        headers["Content-Disposition"] = disposition("attachment", name)
    elif kind == PDF_TYPE:
        headers["Content-Disposition"] = disposition("inline", name)
    return headers


def declared_type(declared: str | None) -> str:
    """Return the media type without its parameters, `application/octet-stream` for an invalid one."""
    kind = (declared or "").partition(";")[0].strip().lower()
    return kind if _TYPE.fullmatch(kind) else UNKNOWN_TYPE


def safe_media_type(declared: str | None) -> str:
    """Return the served media type: plain text for every type that a browser would run."""
    kind = declared_type(declared)
    if _RUN.search(kind):
        kind = TEXT_TYPE
    charset = _CHARSET.search(declared or "") if kind.startswith("text/") else None
    return f"{kind}; charset={charset[1]}" if charset else kind


def disposition(kind: str, name: str) -> str:
    """Return a Content-Disposition with an ASCII name for old clients and the full name (RFC 6266, RFC
    8187)."""
    plain = re.sub(r"[^A-Za-z0-9 !#$&+.^_`|~()\[\]{}=,@-]", "_", name)
    exact = quote(name, safe="!#$&+-.^_`|~")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{exact}"
