"""`/v1/files`."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.base import HEADER, VERSION
from gatewayctl.wire.collections import NewCollection
from gatewayctl.wire.files import Gift, NewFile, Wait
from gatewayd.errors import invalid
from tests.fakes.daemons.control_documents import add, boss, processed, refused
from tests.fakes.daemons.control_socket import Control, control_socket
from tests.fakes.documents.site import LIMIT


@pytest.fixture
async def idle(tmp_path: Path) -> AsyncIterator[Control]:
    """A control socket where nothing is processed."""
    async with control_socket(tmp_path, works=False) as running:
        yield running


def stored(control: Control) -> list[str]:
    return sorted(path.name for path in control.documents.folder.rglob("*") if path.is_file())


async def post(
    control: Control, query: str, content: bytes, until: bytes | None = None, /, **headers: str
) -> bytes:
    """Send an upload by hand and return the reply, its head included, to its end or to some words.

    The server waits a while for the rest of a body before it closes.
    """
    reader, writer = await asyncio.open_unix_connection(control.socket)
    given = {
        "Host": "x",
        HEADER: VERSION,
        "Content_Length": str(len(content)),
        "Connection": "close",
        **headers,
    }
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    writer.write(f"POST /v1/files{query} HTTP/1.1\r\n{lines}\r\n".encode() + content)
    try:
        return await (reader.read() if until is None else reader.readuntil(until))
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_file_comes_in_and_is_processed(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    owner = await boss(control)
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        made = await add(control, b"all about tar", "tar.md", content_type="text/markdown")
    assert (made.outcome, made.dry_run, made.status) == ("created", False, "pending")
    assert (made.user_id, made.user, made.size) == (owner.id, owner.email, 13)
    assert [(line.getMessage(), vars(line)["target"]) for line in caplog.records] == [("file add", made.id)]
    waited = await control.call(
        control.client.call, routes.WAIT_FOR_FILES, body=Wait(ids=[made.id], seconds=10)
    )
    assert waited.is_done
    [file] = waited.files
    assert (file.status, file.error, file.passages, file.characters) == ("completed", None, 1, 13)
    assert (file.name, file.content_type, len(file.checksum)) == ("tar.md", "text/markdown", 64)
    assert await control.call(control.client.call, routes.GET_FILE, made.id) == file
    text = await control.call(control.client.call, routes.GET_FILE_TEXT, made.id)
    assert (text.id, text.text) == (made.id, "all about tar")
    assert stored(control) == [made.id]


async def test_a_file_takes_its_place_in_a_collection(control: Control) -> None:
    await boss(control)
    ann = await control.accounts.add_user("ann")
    client = control.client
    docs = await control.call(client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
    place = {"collection": "docs", "origin": "/srv/docs", "path": "guide/tar.md"}
    file = await processed(control, b"all about tar", "tar.md", user=ann.email, checksum="v1", **place)
    assert (file.user, file.checksum, file.collections) == (ann.email, "v1", ["docs"])
    [held] = (await control.call(client.call, routes.LIST_COLLECTION_FILES, docs.id)).files
    assert (held.file, held.origin, held.path) == (file, "/srv/docs", "guide/tar.md")
    newer = await processed(control, b"more about tar", "tar.md", checksum="v2", **place)
    found = await control.call(client.call, routes.LIST_COLLECTION_FILES, "docs")
    assert [each.file.id for each in found.files] == [newer.id]


@pytest.mark.parametrize(
    ("query", "kind", "param"),
    [
        ({"user": "zoe@example.org"}, "not_found", None),
        ({"collection": "nowhere"}, "not_found", None),
        ({"origin": "/srv", "path": "a"}, "invalid_request", "collection"),
        ({"collection": "docs", "path": "a"}, "invalid_request", "path"),
        ({"collection": "docs", "origin": "/srv", "path": "../a"}, "invalid_request", "path"),
        ({"checksum": ""}, "invalid_request", "file_hash"),
    ],
)
async def test_what_is_refused_leaves_nothing(
    control: Control, query: dict[str, str], kind: str, param: str | None
) -> None:
    await boss(control)
    await control.call(control.client.call, routes.CREATE_COLLECTION, body=NewCollection(name="docs"))
    wanted = NewFile(name="a.txt", **query)
    failure = await refused(control, control.client.upload, wanted, BytesIO(b"text"), 4)
    assert (failure.kind, failure.param) == (kind, param)
    assert stored(control) == []
    assert (await control.call(control.client.call, routes.LIST_FILES)).total == 0


async def test_without_an_administrator_an_owner_is_named(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    failure = await refused(control, control.client.upload, NewFile(name="a"), BytesIO(b"text"), 4)
    assert (failure.kind, failure.param) == ("not_configured", "user")
    assert (await add(control, b"text", user=ann.id)).user == ann.email


async def test_too_large_a_file_is_refused_before_it_is_read(control: Control) -> None:
    await boss(control)
    content = bytes(LIMIT + 1)
    failure = await refused(control, control.client.upload, NewFile(name="a"), BytesIO(content), len(content))
    assert failure.kind == "too_large"
    reply = await post(control, "?name=a", b"", b"too_large", Content_Length=str(LIMIT + 1))
    assert b"too_large" in reply
    assert stored(control) == []


@pytest.mark.parametrize(
    ("query", "headers", "expected"),
    [
        ("?name=a&dry_run=true", {}, (b" 400 ", b'"param":"dry_run"')),
        ("?name=a&dry_run=maybe", {}, (b" 400 ", b'"param":"dry_run"')),
        ("?name=a&dry_run=false", {}, (b" 200 ", b'"outcome":"created"')),
        ("?name=a&colour=red", {}, (b" 422 ", b'"param":"colour"')),
        ("", {}, (b" 422 ", b'"param":"name"')),
        ("?name=a", {"Content_Type": "application/json"}, (b" 415 ", b'"param":"Content-Type"')),
        ("?name=a%00b", {}, (b" 400 ", b'"param":"file"')),
    ],
)
async def test_the_query_says_what_the_file_is(
    control: Control, query: str, headers: dict[str, str], expected: tuple[bytes, bytes]
) -> None:
    await boss(control)
    reply = await post(control, query, b"text", **headers)
    assert all(part in reply for part in expected), reply
    assert len(stored(control)) == (b" 200 " in reply)


async def test_an_upload_that_breaks_off_leaves_nothing(control: Control) -> None:
    await boss(control)
    _, writer = await asyncio.open_unix_connection(control.socket)
    head = f"POST /v1/files?name=a HTTP/1.1\r\nHost: x\r\n{HEADER}: {VERSION}\r\nContent-Length: 9\r\n\r\n"
    writer.write(head.encode() + b"text")
    await writer.drain()
    while not stored(control):
        await asyncio.sleep(0.01)
    writer.close()
    while stored(control):
        await asyncio.sleep(0.01)
    assert (await control.call(control.client.call, routes.LIST_FILES)).total == 0


async def test_lists_are_by_owner_status_and_name(idle: Control) -> None:
    ann = await idle.accounts.add_user("ann")
    await boss(idle)
    for name in ("a.txt", "b.txt", "b.pdf"):
        await add(idle, b"text", name)
    await add(idle, b"text", "c.txt", user=ann.email)
    client = idle.client

    async def names(**how: object) -> tuple[list[str], int]:
        found = await idle.call(client.call, routes.LIST_FILES, **how)
        return sorted(file.name for file in found.files), found.total

    assert await names() == (["a.txt", "b.pdf", "b.txt", "c.txt"], 4)
    assert await names(user=ann.email) == (["c.txt"], 1)
    assert await names(query="B.*") == (["b.pdf", "b.txt"], 2)
    assert await names(status="completed") == ([], 0)
    assert await names(query="*.txt", status="pending", user="boss@example.org") == (["a.txt", "b.txt"], 2)
    page, total = await names(limit=3)
    assert (len(page), total) == (3, 4)
    for how in ({"status": "lost"}, {"limit": 0}):
        assert (await refused(idle, client.call, routes.LIST_FILES, **how)).kind == "invalid_request"
    assert (await refused(idle, client.call, routes.LIST_FILES, user="zoe@example.org")).kind == "not_found"


async def test_owners_that_are_gone_have_no_name(idle: Control) -> None:
    ann = await idle.accounts.add_user("ann")
    made = await add(idle, b"text", user=ann.email)
    await idle.accounts.users.remove(ann.id, None)
    found = await idle.call(idle.client.call, routes.GET_FILE, made.id)
    assert (found.user_id, found.user) == (ann.id, "")


async def test_unknown_files_are_not_found(control: Control) -> None:
    client = control.client
    for endpoint in (routes.GET_FILE, routes.GET_FILE_TEXT, routes.RETRY_FILE, routes.REMOVE_FILE):
        for file_id in ("x", "../a", "x" * 300, "a\0b"):
            assert (await refused(control, client.call, endpoint, file_id)).kind == "not_found"


async def test_a_failed_file_is_tried_again(control: Control) -> None:
    await boss(control)
    client = control.client
    control.documents.extractor.failures = [invalid("cannot read the document: it is torn")]
    failed = await processed(control, b"text")
    assert (failed.status, failed.error) == ("failed", "cannot read the document: it is torn")
    rehearsed = await control.call(client.call, routes.RETRY_FILE, failed.id, dry_run=True)
    assert (rehearsed.status, rehearsed.dry_run) == ("pending", True)
    assert (await control.call(client.call, routes.GET_FILE, failed.id)).status == "failed"
    again = await control.call(client.call, routes.RETRY_FILE, failed.id)
    assert (again.outcome, again.status, again.error) == ("changed", "pending", None)
    waited = await control.call(client.call, routes.WAIT_FOR_FILES, body=Wait(ids=[failed.id], seconds=10))
    assert waited.files[0].status == "completed"


async def test_what_is_being_processed_is_not_tried_again(idle: Control) -> None:
    await boss(idle)
    made = await add(idle, b"text")
    assert (await refused(idle, idle.client.call, routes.RETRY_FILE, made.id)).kind == "conflict"


async def test_only_a_real_delete_deletes(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    await boss(control)
    client = control.client
    file = await processed(control, b"text")
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        rehearsed = await control.call(client.call, routes.REMOVE_FILE, file.id, dry_run=True)
        assert (rehearsed.outcome, rehearsed.dry_run, rehearsed.name) == ("removed", True, "a.txt")
        assert (await control.call(client.call, routes.GET_FILE, file.id)) == file
        assert stored(control) == [file.id]
        assert caplog.records == []
        removed = await control.call(client.call, routes.REMOVE_FILE, file.id)
    assert (removed.outcome, removed.dry_run, removed.id) == ("removed", False, file.id)
    assert [line.getMessage() for line in caplog.records] == ["file remove"]
    assert stored(control) == []
    assert (await refused(control, client.call, routes.GET_FILE, file.id)).kind == "not_found"


async def test_waiting_ends_when_all_are_done_or_gone(idle: Control) -> None:
    await boss(idle)
    client = idle.client
    first, second = await add(idle, b"one"), await add(idle, b"two", "b.txt")
    wanted = Wait(ids=[first.id, "gone", second.id, first.id], seconds=30)
    waiting = asyncio.ensure_future(idle.call(client.call, routes.WAIT_FOR_FILES, body=wanted))
    await idle.call(client.call, routes.REMOVE_FILE, first.id)
    idle.documents.queue.start()
    waited = await waiting
    assert waited.is_done
    assert [(file.id, file.status) for file in waited.files] == [(second.id, "completed")]


async def test_waiting_ends_when_the_time_is_up(idle: Control) -> None:
    await boss(idle)
    made = [(await add(idle, b"text", f"{number}.txt")).id for number in range(3)]
    waited = await idle.call(idle.client.call, routes.WAIT_FOR_FILES, body=Wait(ids=made, seconds=1))
    assert not waited.is_done
    assert [(file.id, file.status) for file in waited.files] == [(each, "pending") for each in made]


@pytest.mark.parametrize(
    ("ids", "seconds", "param"),
    [(["x"], 0, "seconds"), (["x"], 31, "seconds"), (["x"] * 1001, 1, "ids")],
)
async def test_waiting_has_bounds(control: Control, ids: list[str], seconds: int, param: str) -> None:
    failure = await refused(
        control, control.client.call, routes.WAIT_FOR_FILES, body=Wait(ids=ids, seconds=seconds)
    )
    assert (failure.kind, failure.param) == ("invalid_request", param)


async def test_nothing_to_wait_for_is_done(control: Control) -> None:
    waited = await control.call(control.client.call, routes.WAIT_FOR_FILES, body=Wait(ids=[], seconds=1))
    assert (waited.files, waited.is_done) == ([], True)


async def test_what_a_removed_user_left_is_given_away(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    owner, client = await boss(control), control.client
    ann = await control.accounts.add_user("ann")
    left, kept = await add(control, b"left", user=ann.email), await add(control, b"kept", "b.txt")
    assert (await control.call(client.call, routes.LIST_FILES, orphaned=True)).files == []
    await control.call(client.call, routes.REMOVE_USER, ann.id)
    found = await control.call(client.call, routes.LIST_FILES, orphaned=True)
    assert ([file.id for file in found.files], found.total) == ([left.id], 1)
    assert (found.files[0].user_id, found.files[0].user) == (ann.id, "")
    gift = Gift(user=owner.email)
    tried = await control.call(client.call, routes.GIVE_FILE, left.id, body=gift, dry_run=True)
    assert (tried.outcome, tried.user, tried.dry_run) == ("changed", owner.email, True)
    assert (await control.call(client.call, routes.LIST_FILES, orphaned=True)).total == 1
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        given = await control.call(client.call, routes.GIVE_FILE, left.id, body=gift)
    assert (given.outcome, given.user_id) == ("changed", owner.id)
    assert [(line.getMessage(), vars(line)["target"]) for line in caplog.records] == [("file give", left.id)]
    assert (await control.call(client.call, routes.LIST_FILES, orphaned=True)).total == 0
    assert (await control.call(client.call, routes.GIVE_FILE, kept.id, body=gift)).outcome == "unchanged"


async def test_a_file_is_given_to_somebody_who_is_there(control: Control) -> None:
    owner, client = await boss(control), control.client
    file = await add(control, b"text")
    for file_id, user in ((file.id, "zoe@example.org"), ("none", owner.email)):
        assert (
            await refused(control, client.call, routes.GIVE_FILE, file_id, body=Gift(user=user))
        ).kind == "not_found"
    assert (await control.call(client.call, routes.GET_FILE, file.id)).user_id == owner.id
