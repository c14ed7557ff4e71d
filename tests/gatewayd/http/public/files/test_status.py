"""Tests for gatewayd.http.public.files.status."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientResponse

from tests.fakes.documents.site import FILES, DocumentsSite, serving_documents
from tests.fakes.http.public_app import bearer


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    """A site in which nothing is processed until a test wants it."""
    async with serving_documents(tmp_path, works=False) as made:
        yield made


@asynccontextmanager
async def followed(site: DocumentsSite, file_id: str) -> AsyncIterator[ClientResponse]:
    headers = bearer(await site.services.accounts.session(site.user))
    path = f"{FILES}/{file_id}/process/status?stream=true"
    async with site.site.client.get(path, headers=headers) as reply:
        assert (reply.status, reply.content_type) == (200, "text/event-stream")
        yield reply


async def next_frame(reply: ClientResponse) -> dict[str, str]:
    """Return the next event as a script reads it: the line that begins with `data: `."""
    while not (line := await reply.content.readline()).startswith(b"data: "):
        assert line, "the stream is over"
    found: dict[str, str] = json.loads(line.removeprefix(b"data: "))
    return found


async def test_change_by_change(site: DocumentsSite) -> None:
    file = await site.upload(b"words")
    async with followed(site, file["id"]) as reply:
        assert await next_frame(reply) == {"status": "pending"}
        site.services.queue.start()
        assert await reply.read() == b'\ndata: {"status":"completed"}\n\n'


async def test_a_failure_says_why(site: DocumentsSite) -> None:
    file = await site.upload(b"")
    async with followed(site, file["id"]) as reply:
        assert await next_frame(reply) == {"status": "pending"}
        site.services.queue.start()
        failed = await next_frame(reply)
        assert (failed["status"], "empty" in failed["error"]) == ("failed", True)
        assert await reply.read() == b"\n"


async def test_a_final_state_at_once(site: DocumentsSite) -> None:
    site.services.queue.start()
    file = await site.processed(b"words")
    async with followed(site, file["id"]) as reply:
        assert await reply.read() == b'data: {"status":"completed"}\n\n'


async def test_a_file_that_goes(site: DocumentsSite) -> None:
    file = await site.upload(b"words")
    async with followed(site, file["id"]) as reply:
        assert await next_frame(reply) == {"status": "pending"}
        await site.ok("DELETE", f"{FILES}/{file['id']}")
        assert await reply.read() == b'\ndata: {"status":"not_found"}\n\n'


async def test_a_comment_in_the_silence(site: DocumentsSite) -> None:
    file = await site.upload(b"words")
    async with followed(site, file["id"]) as reply:
        await reply.content.readuntil(b": keep-alive\n\n")


async def test_a_client_that_leaves(site: DocumentsSite) -> None:
    file = await site.upload(b"words")
    waiting = site.services.updates.watch._waiting
    async with followed(site, file["id"]) as reply:
        assert await next_frame(reply) == {"status": "pending"}
        while not waiting:
            await asyncio.sleep(0)
        reply.close()
    while waiting:
        await asyncio.sleep(0.01)


async def test_a_head_is_no_stream(site: DocumentsSite) -> None:
    file = await site.upload(b"words")
    headers = bearer(await site.services.accounts.session(site.user))
    path = f"{FILES}/{file['id']}/process/status?stream=true"
    async with site.site.client.head(path, headers=headers) as reply:
        assert (reply.status, reply.content_type) == (200, "application/json")
