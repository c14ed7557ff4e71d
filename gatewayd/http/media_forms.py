"""Forms that go on to a provider: fields are read, files are sent on as they arrive or kept on disk first."""

import asyncio
import secrets
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from aiohttp import BodyPartReader, hdrs, web

from gatewayd.completions.records import Body
from gatewayd.errors import invalid
from gatewayd.http.connections.minimum_rate import body_reader
from gatewayd.http.connections.request_heads import send_100_continue
from gatewayd.http.uploads import (
    CHUNK_BYTES,
    MAX_FIELD_BYTES,
    MAX_OVERHEAD_BYTES,
    FormBytes,
    FormReader,
    check_form_body,
    check_part,
    malformed,
    media_type_of,
    place_of,
    readable,
    too_large,
)
from gatewayd.pipeline.endpoints import check_names

MAX_FORM_PARTS: Final = 64

_ESCAPES: Final = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})


@dataclass(frozen=True, slots=True)
class FormFile:
    """The head of a file in a form."""

    name: str
    filename: str
    content_type: str


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a form in the temporary file: its head, and the place of its bytes."""

    head: FormFile
    start: int
    size: int


class MediaForm:
    """A form of fields and files, up to its first file or, after `spool`, whole.

    All files together have at most `limit` bytes.
    """

    def __init__(self, reader: FormReader, limit: int) -> None:
        self._reader = reader
        self._limit = limit
        self._left = limit
        self._room = MAX_FIELD_BYTES
        self._count = 0
        self._names: set[str] = set()
        self._fields: list[tuple[str, str]] = []
        self._part: BodyPartReader | None = None
        self._head = FormFile("", "", "")
        self._spool: IO[bytes] | None = None
        self._files: list[StoredFile] = []

    def body(self) -> Body:
        """Return the fields so far; those whose names end with `[]` are lists."""
        found: dict[str, Any] = {}
        for name, value in self._fields:
            if name.endswith("[]"):
                found.setdefault(name, []).append(value)
            else:
                found[name] = value
        return found

    async def read_fields(self, file: str) -> None:
        """Read the form up to its first file; raises invalid_request (422) naming `file` without one."""
        self._part = await self._next_file()
        if self._part is None:
            raise invalid(f"cannot accept {file}: the form has none", param=file, code="validation")

    async def spool(self, folder: Path) -> None:
        """Read the rest of the form, with its files into an unnamed file below `folder`."""
        # Not in a thread: one that a cancelled request leaves would open a file for nobody.
        self._spool = spool = _open_spool(folder)
        place = 0
        while self._part is not None:
            start = place
            async for piece in self._file_bytes(self._part):
                await asyncio.to_thread(spool.write, piece)
                place += len(piece)
            self._files.append(StoredFile(self._head, start, place - start))
            self._part = await self._next_file()

    def content(self, body: Mapping[str, Any]) -> "FormContent":
        """Return the form with the fields of `body`, in the encoding of a request."""
        boundary = secrets.token_hex(16)
        fields = b"".join(encode_field(boundary, name, value) for name, value in _flat(body))
        if self._spool is None:
            return FormContent(boundary, None, lambda: self._live(boundary, fields))
        size = len(fields) + sum(
            len(encode_file_head(boundary, file.head)) + file.size + 2 for file in self._files
        )
        return FormContent(boundary, size + len(_end(boundary)), lambda: self._stored(boundary, fields))

    async def close(self) -> None:
        """Delete the stored files."""
        if self._spool is not None:
            await asyncio.to_thread(self._spool.close)

    async def _live(self, boundary: str, fields: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the form while it arrives."""
        yield fields
        known = len(self._fields)
        while self._part is not None:
            yield encode_file_head(boundary, self._head)
            async for piece in self._file_bytes(self._part):
                yield piece
            yield b"\r\n"
            self._part = await self._next_file()
            for name, value in self._fields[known:]:
                yield encode_field(boundary, name, value)
            known = len(self._fields)
        yield _end(boundary)

    async def _stored(self, boundary: str, fields: bytes) -> AsyncGenerator[bytes, None]:
        """Yield the form with its files from the disk."""
        spool = self._spool
        if spool is None:
            raise RuntimeError("cannot send a form that is not stored")
        yield fields
        for file in self._files:
            yield encode_file_head(boundary, file.head)
            await asyncio.to_thread(spool.seek, file.start)
            left = file.size
            while left:
                piece = await asyncio.to_thread(spool.read, min(left, CHUNK_BYTES))
                if not piece:
                    raise RuntimeError("a stored form is shorter than it was")
                left -= len(piece)
                yield piece
            yield b"\r\n"
        yield _end(boundary)

    async def _file_bytes(self, part: BodyPartReader) -> AsyncGenerator[bytes, None]:
        while not part.at_eof():
            with readable(place_of(self._head.name)):
                piece = await part.read_chunk(CHUNK_BYTES)
            self._left -= len(piece)
            if self._left < 0:
                raise too_large(f"the files of the form: they are over the limit of {self._limit} bytes")
            if piece:
                yield piece

    async def _next_file(self) -> BodyPartReader | None:
        """Read the fields up to the next file and return it, None at the end of the form."""
        while True:
            self._count += 1
            if self._count > MAX_FORM_PARTS + 1:
                raise too_large(f"the form: it has more than {MAX_FORM_PARTS} parts")
            with readable(f"part {self._count} of the form"):
                part = await self._reader.next()
            if part is None:
                return None
            disposition = self._reader.disposition
            name = disposition.get("name", "")
            checked = check_part(part, name, self._count)
            if "filename" in disposition:
                kind = media_type_of(checked) or "application/octet-stream"
                self._head = FormFile(name, disposition["filename"], kind)
                return checked
            await self._read_field(name, checked)

    async def _read_field(self, name: str, part: BodyPartReader) -> None:
        check_names({name: ""})
        if name in self._names and not name.endswith("[]"):
            raise malformed(place_of(name), "the form has it twice", name)
        self._names.add(name)
        value = bytearray()
        while not part.at_eof():
            with readable(place_of(name)):
                value += await part.read_chunk(CHUNK_BYTES)
            if len(value) > self._room:
                raise too_large(f"the fields of the form: they are over the limit of {MAX_FIELD_BYTES} bytes")
        self._room -= len(value)
        with readable(place_of(name)):
            self._fields.append((name, value.decode()))


class FormContent:
    """A `catalog.interfaces.RequestContent` of a form; without a known length it can be sent once."""

    def __init__(
        self, boundary: str, length: int | None, pieces: Callable[[], AsyncGenerator[bytes, None]]
    ) -> None:
        self.media_type = f"multipart/form-data; boundary={boundary}"
        self.length = length
        self.is_spent = False
        self._pieces = pieces

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes."""
        self.is_spent = self.length is None
        pieces = self._pieces()
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()


async def read_media_form(request: web.Request, limit: int, file: str) -> MediaForm:
    """Read a form up to its first file and return it; `file` names the file that is missing otherwise.

    Answers `Expect: 100-continue`. Raises too_large by the declared length alone, and invalid_request for a
    malformed form and for a form without a file (422).
    """
    if hdrs.CONTENT_TYPE not in request.headers:
        raise invalid(f"cannot accept {file}: the request has no form", param=file, code="validation")
    check_form_body(request, limit, MAX_OVERHEAD_BYTES)
    with readable("the form"):
        reader = FormReader(request.headers, FormBytes(body_reader(request)))
    await send_100_continue(request)
    form = MediaForm(reader, limit)
    await form.read_fields(file)
    return form


def encode_field(boundary: str, name: str, value: str) -> bytes:
    """Return a field as a part of a form (RFC 7578, 4.2)."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name.translate(_ESCAPES)}"\r\n\r\n'
    return head.encode() + value.encode() + b"\r\n"


def encode_file_head(boundary: str, file: FormFile) -> bytes:
    """Return the head of a file in a form."""
    name, filename = file.name.translate(_ESCAPES), file.filename.translate(_ESCAPES)
    return (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n'
        f"Content-Type: {file.content_type}\r\n\r\n"
    ).encode()


def _open_spool(folder: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


def _end(boundary: str) -> bytes:
    return f"--{boundary}--\r\n".encode()


def _flat(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in body.items():
        for item in value if isinstance(value, list) else [value]:
            yield name, item if isinstance(item, str) else _word(item)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
