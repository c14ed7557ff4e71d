"""Tests for gatewayd.http.public.knowledge.replies."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gatewayd.accounts.records import Actor
from gatewayd.errors import ErrorKind, GatewayError, not_found
from gatewayd.http.public.files.owners import OwnerFinder
from gatewayd.http.public.knowledge.replies import CollectionReplies
from gatewayd.knowledge.members import MemberResult
from gatewayd.knowledge.records import Collection
from tests.fakes.documents.site import DocumentsSite, serving_documents


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    async with serving_documents(tmp_path) as made:
        yield made


async def some(site: DocumentsSite) -> tuple[CollectionReplies, Actor, Collection]:
    services = site.services
    replies = CollectionReplies(services.collections, services.members, OwnerFinder(services.accounts.users))
    who = await services.accounts.actor(site.user)
    made = await services.collections.get(who, (await site.collection())["id"])
    return replies, who, made


def body_of(reply: web.StreamResponse) -> Any:
    assert isinstance(reply, web.Response)
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)


async def test_results_of_a_batch(site: DocumentsSite) -> None:
    replies, who, made = await some(site)
    results = [
        MemberResult("a", is_changed=True),
        MemberResult("b"),
        MemberResult("ä", error=not_found("file", "ä")),
    ]
    reply = await replies.batch(who, made, results)
    assert body_of(reply)["results"] == [
        {"file_id": "a", "status": "added"},
        {"file_id": "b", "status": "unchanged"},
        {"file_id": "ä", "status": "failed", "error": "cannot find file 'ä'"},
    ]
    warnings = {"message": "1 of 3 files could not be added", "errors": ["ä: cannot find file 'ä'"]}
    assert body_of(reply)["warnings"] == warnings
    told = "1 of 3 files could not be added; ?: cannot find file '?'"
    assert reply.headers["X-Gateway-Warning"] == told


async def test_a_batch_that_failed(site: DocumentsSite) -> None:
    replies, who, made = await some(site)
    empty = GatewayError(
        ErrorKind.EMPTY_CONTENT, "cannot add file 'b': its content is empty", param="file_id"
    )
    results = [
        MemberResult("b", error=empty),
        MemberResult("c", error=empty),
        MemberResult("d", error=not_found("file", "d")),
    ]
    with pytest.raises(GatewayError) as caught:
        await replies.batch(who, made, results)
    assert caught.value.kind is ErrorKind.EMPTY_CONTENT
    assert caught.value.message == "cannot add file 'b': its content is empty; cannot find file 'd'"


async def test_lists_and_single_ones(site: DocumentsSite) -> None:
    replies, who, made = await some(site)
    (listed,) = await replies.listed(who, [made])
    assert (listed["user"]["email"], listed["write_access"]) == ("user@example.org", True)
    shown = await replies.shown(who, made)
    assert (shown["files"], shown["file_count"], shown["write_access"]) == ([], 0, True)


async def test_large_ones_do_not_tell_their_files(site: DocumentsSite) -> None:
    replies, who, made = await some(site)
    for name in ("a.txt", "b.txt"):
        file = await site.processed(f"the text of {name}".encode(), name=name)
        await site.services.members.add(who, made.id, file["id"])
    assert len((await replies.shown(who, made, limit=2))["files"]) == 2
    shown = await replies.shown(who, made, limit=1)
    assert (shown["files"], shown["file_count"]) == (None, 2)
