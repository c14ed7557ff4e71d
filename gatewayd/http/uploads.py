"""Readers of uploads: the fields of a form, and its file as a stream."""

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, cast
from urllib.parse import unquote

from aiohttp import BodyPartReader, MultipartReader, StreamReader, hdrs, web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict, CIMultiDictProxy

from gatewayd.errors import ErrorKind, GatewayError, invalid, shorten
from gatewayd.http.connections.minimum_rate import BodyReader, body_reader
from gatewayd.http.connections.request_heads import send_100_continue

CHUNK_BYTES: Final = 128 * 1024
MAX_PARTS: Final = 32
MAX_FIELD_BYTES: Final = 128 * 1024
"""Largest size of one field, and of all fields together."""

MAX_LINE_BYTES: Final = 8190
MAX_LINES: Final = 1000
"""Largest number of lines outside of contents: the preamble, boundaries and heads of parts."""

MAX_HEADERS: Final = 16
MAX_OVERHEAD_BYTES: Final = MAX_FIELD_BYTES + 64 * 1024
"""Largest difference between the declared length of a form and its file."""

PLAIN_ENCODINGS: Final = frozenset({"", "binary", "8bit", "7bit"})
MEDIA_TYPE_PATTERN: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;[\x20-\x7e]*)?", re.ASCII)
MAX_MEDIA_TYPE_CHARACTERS: Final = 255

# RFC 7578, 4.2. Only quotes and backslashes are escaped; other backslashes belong to the name. Some clients
# escape nothing, so a quote at the end of the header always ends the name.
_PARAMETER: Final = re.compile(
    r";\s*(?P<name>[\w!#$&+.^`|~-]+\*?)\s*=\s*"
    r"(?:\"(?P<quoted>(?:[^\"\\]|\\[\"\\]|\\(?![\"\\])|\\(?=\"\Z))*)\"|(?P<token>[^\s;\"]+))\s*",
    re.ASCII,
)
_EXTENDED: Final = re.compile(r"(?:utf-8|iso-8859-1)?'[\w-]*'", re.ASCII | re.IGNORECASE)


class UploadForm:
    """A form with one file. `fields` has the fields before the file, and all of them after its end."""

    def __init__(self, reader: "FormReader") -> None:
        self._reader = reader
        self._part: BodyPartReader | None = None
        self._count = 0
        self._room = MAX_FIELD_BYTES
        self.fields: dict[str, str] = {}
        self.name = ""
        self.content_type: str | None = None

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the file, then read the fields after it.

        Raises invalid_request for a malformed form, with status 408 below the minimum rate, and
        ConnectionError when the client leaves. The file is incomplete then.
        """
        if self._part is None:
            return
        part, self._part = self._part, None
        while not part.at_eof():
            with readable(place_of("file")):
                piece = await part.read_chunk(CHUNK_BYTES)
            if piece:
                yield piece
        if await self._next_file() is not None:
            raise invalid("cannot read the form: it has more than one file", param="file")

    async def find_file(self) -> None:
        """Read the form up to its file; raises invalid_request (422) without a file."""
        part = await self._next_file()
        if part is None:
            raise invalid("cannot accept file: the form has none", param="file", code="validation")
        self._part = part
        self.name = self._reader.disposition.get("filename", "")
        self.content_type = media_type_of(part)

    async def _next_file(self) -> BodyPartReader | None:
        """Read the fields up to the next file and return it, None at the end of the form."""
        while True:
            self._count += 1
            if self._count > MAX_PARTS + 1:
                raise too_large(f"the form: it has more than {MAX_PARTS} parts")
            with readable(f"part {self._count} of the form"):
                part = await self._reader.next()
            if part is None:
                return None
            name = self._reader.disposition.get("name", "")
            checked = check_part(part, name, self._count)
            if name == "file":
                return checked
            await self._read_field(name, checked)

    async def _read_field(self, name: str, part: BodyPartReader) -> None:
        if name in self.fields:
            raise malformed(place_of(name), "the form has it twice", name)
        value = bytearray()
        while not part.at_eof():
            with readable(place_of(name)):
                value += await part.read_chunk(CHUNK_BYTES)
            if len(value) > self._room:
                raise too_large(f"the fields of the form: they are over the limit of {MAX_FIELD_BYTES} bytes")
        self._room -= len(value)
        with readable(place_of(name)):
            self.fields[name] = value.decode()


class FormReader(MultipartReader):
    """Reader of aiohttp, which gets parts without Content-Disposition; `disposition` has its parameters."""

    multipart_reader_cls = MultipartReader

    def __init__(self, headers: Mapping[str, str], source: "FormBytes") -> None:
        super().__init__(
            headers, cast(StreamReader, source), max_field_size=MAX_LINE_BYTES, max_headers=MAX_HEADERS
        )
        self.disposition: dict[str, str] = {}

    async def fetch_next_part(self) -> MultipartReader | BodyPartReader:
        """Return the next part; raises ValueError for a malformed Content-Disposition."""
        part = await super().fetch_next_part()
        headers = CIMultiDict(part.headers)
        self.disposition = _disposition(headers.getall(hdrs.CONTENT_DISPOSITION, []))
        headers.popall(hdrs.CONTENT_DISPOSITION, None)
        part.headers = CIMultiDictProxy(headers)
        return part


class FormBytes:
    """Stream for the reader of aiohttp, with bounds on lines and the minimum rate."""

    def __init__(self, content: BodyReader) -> None:
        self._content = content
        self._held = bytearray()
        self._lines = 0

    async def read(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end."""
        if not self._held:
            return await self._content.read(size)
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    async def readline(self, *, max_line_length: int | None = None) -> bytes:
        """Return a line with its end."""
        self._lines += 1
        if self._lines > MAX_LINES:
            raise ValueError("it has too many lines")
        limit = max_line_length or MAX_LINE_BYTES
        while True:
            end = self._held.find(b"\n", 0, limit) + 1
            if not end and len(self._held) >= limit:
                raise ValueError("a line of it is too long")
            more = b"" if end else await self._content.read(CHUNK_BYTES)
            if not more:
                return await self.read(end or CHUNK_BYTES) if self._held else b""
            self._held += more

    def unread_data(self, data: bytes) -> None:
        """Put back bytes that were read too far."""
        self._held[:0] = data

    def at_eof(self) -> bool:
        """Return whether the stream has ended."""
        return not self._held and self._content.at_eof()


async def read_form(request: web.Request, limit: int) -> UploadForm:
    """Read a form up to its part `file` of at most `limit` bytes, and return it.

    Answers `Expect: 100-continue`. Raises too_large by the declared length alone, and invalid_request for a
    malformed form and for a form without a file (422).
    """
    if hdrs.CONTENT_TYPE not in request.headers:
        raise invalid("cannot accept file: the request has no form", param="file", code="validation")
    check_form_body(request, limit, MAX_OVERHEAD_BYTES)
    with readable("the form"):
        reader = FormReader(request.headers, FormBytes(body_reader(request)))
    await send_100_continue(request)
    form = UploadForm(reader)
    await form.find_file()
    return form


async def read_stream(request: web.Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a body that is the file itself; raises as `read_form` and its `stream` do.

    The caller counts the bytes of a body without a declared length.
    """
    check_form_body(request, limit)
    await send_100_continue(request)
    reader = body_reader(request)
    while True:
        with readable("the body"):
            piece = await reader.read(CHUNK_BYTES)
        if not piece:
            return
        yield piece


def check_part(part: BodyPartReader | MultipartReader, name: str, number: int) -> BodyPartReader:
    """Return a part of a form; raise invalid_request for one without a name or with an encoding."""
    if not name:
        raise malformed(f"part {number} of the form", "it has no name")
    if not isinstance(part, BodyPartReader):
        raise malformed(place_of(name), "it is multipart itself", name)
    for header in (hdrs.CONTENT_ENCODING, hdrs.CONTENT_TRANSFER_ENCODING):
        if part.headers.get(header, "").strip().lower() not in PLAIN_ENCODINGS:
            raise malformed(place_of(name), f"it has a {header}: send the bytes as they are", name)
    return part


def place_of(name: str) -> str:
    """Return the words for a part of a form."""
    return f"the part {shorten(name)!r} of the form"


def check_form_body(request: web.Request, limit: int, overhead: int = 0) -> None:
    """Refuse a compressed body, and one whose declared length is over the limit."""
    encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity")
    if encoding.lower() not in {"identity", ""}:
        raise invalid(
            f"cannot read a body with Content-Encoding {shorten(encoding)!r}: send it uncompressed",
            param="Content-Encoding",
            code="unsupported_media_type",
        )
    if request.content_length is not None and request.content_length > limit + overhead:
        raise too_large(f"the file: it is over the limit of {limit} bytes")


def least_size(request: web.Request) -> int:
    """Return how many bytes the file of a form has at least, by the declared length of the body."""
    return max(0, (request.content_length or 0) - MAX_OVERHEAD_BYTES)


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn the exceptions of the readers into a refusal that names the unreadable part."""
    try:
        yield
    except UnicodeDecodeError:
        raise malformed(what, "it is not UTF-8") from None
    except (ValueError, RuntimeError, HttpProcessingError, web.RequestPayloadError) as error:
        raise malformed(what, _reason(error)) from None


def _reason(error: Exception) -> str:
    """Return a reason that repeats nothing of the request."""
    text = str(error)
    if text.startswith(("it ", "a line of it ")):
        return text
    if isinstance(error, web.RequestPayloadError) or "EOF" in text:
        return "it ends too early"
    return "it is malformed"


def malformed(what: str, reason: str, param: str | None = None) -> GatewayError:
    """Return the refusal of a form that cannot be read."""
    return invalid(f"cannot read {what}: {reason}", param=param, code="malformed_form")


def too_large(what: str) -> GatewayError:
    """Return the refusal of a form over a limit."""
    return GatewayError(ErrorKind.TOO_LARGE, f"cannot read {what}")


def _disposition(lines: list[str]) -> dict[str, str]:
    """Return `name` and `filename` of a part; `filename*` takes precedence (RFC 8187)."""
    kind, separator, rest = lines[0].partition(";") if len(lines) == 1 else ("", "", "")
    if kind.strip().lower() != "form-data":
        raise ValueError("it has no Content-Disposition of a form")
    found: dict[str, str] = {}
    position, text = 0, separator + rest
    while match := _PARAMETER.match(text, position):
        value = match["token"] if match["quoted"] is None else re.sub(r"\\([\"\\])", r"\1", match["quoted"])
        found.setdefault(match["name"].lower(), value)
        position = match.end()
    if text[position:].strip(" ;"):
        raise ValueError("it has a malformed Content-Disposition")
    if "filename*" in found:
        found["filename"] = _extended(found["filename*"], found.get("filename", ""))
    return {name: _clean(found[name]) for name in ("name", "filename") if name in found}


def _extended(value: str, otherwise: str) -> str:
    prefix = _EXTENDED.match(value)
    if prefix is None:
        return otherwise
    encoding = prefix[0].partition("'")[0] or "utf-8"
    return unquote(value[prefix.end() :], encoding, "replace")


def _clean(text: str) -> str:
    """Return a text with invalid UTF-8 replaced, as it is shown and stored."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def media_type_of(part: BodyPartReader) -> str | None:
    """Return the declared media type of a part, None for none or one that cannot be repeated."""
    declared = part.headers.get(hdrs.CONTENT_TYPE, "").strip()
    is_sane = len(declared) <= MAX_MEDIA_TYPE_CHARACTERS and MEDIA_TYPE_PATTERN.fullmatch(declared)
    return declared if is_sane else None
