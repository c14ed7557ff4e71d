"""Multipart forms byte by byte, and connections over which they are sent in pieces."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.fakes.http.public_app import Client

BOUNDARY = "b" * 20
FORM = f"multipart/form-data; boundary={BOUNDARY}"


def part(disposition: str, content: bytes, *headers: str) -> bytes:
    """Return a part with its boundary; `disposition` follows `form-data; `."""
    lines = [f"--{BOUNDARY}", f"Content-Disposition: form-data; {disposition}", *headers, "", ""]
    return "\r\n".join(lines).encode() + content + b"\r\n"


def field(name: str, value: str) -> bytes:
    """Return a part that is a field."""
    return part(f'name="{name}"', value.encode())


def file_part(content: bytes, name: str = "a.txt", *headers: str) -> bytes:
    """Return the part with the file, in plain text unless headers say otherwise."""
    return part(f'name="file"; filename="{name}"', content, *(headers or ("Content-Type: text/plain",)))


def form(*parts: bytes) -> bytes:
    """Return a whole form."""
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


@dataclass
class Wire:
    """A connection to a server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> str:
        """Return the next head, an interim one or that of the answer."""
        return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    async def rest(self) -> bytes:
        """Return everything up to the end of the connection."""
        return await self.reader.read()


@asynccontextmanager
async def wired(client: Client) -> AsyncIterator[Wire]:
    """Connect to the server of a test client."""
    reader, writer = await asyncio.open_connection(client.host, client.port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.transport.abort()


def upload_head(path: str, length: int, credential: str = "", *headers: str) -> bytes:
    """Return the head of an upload of a form."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: gateway",
        f"Content-Type: {FORM}",
        f"Content-Length: {length}",
        f"Authorization: Bearer {credential}",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()
