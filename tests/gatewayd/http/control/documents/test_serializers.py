"""How files and collections are shown."""

from dataclasses import replace
from pathlib import Path

from gatewayd.catalog.records import Grant
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.documents.serializers import DocumentViews
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.records import Collection, CollectionLink
from tests.fakes.accounts.services import Accounts
from tests.fakes.documents.collections import World, a_file, build_world


async def views(tmp_path: Path) -> tuple[World, DocumentViews, str]:
    world, accounts = build_world(tmp_path), Accounts()
    ann = await accounts.add_user("ann")
    principals = GranteeFinder(accounts.users, accounts.groups)
    return world, DocumentViews(world.collections, principals), ann.id


async def test_a_file_is_shown_whole(tmp_path: Path) -> None:
    world, shown, ann = await views(tmp_path)
    file = a_file(
        "f1",
        ann,
        status=FileStatus.FAILED,
        error="it is torn",
        pages=3,
        blank_pages=2,
        chunks=2,
        characters=9,
    )
    await world.shelve(file, "text")
    for collection_id in ("c1", "c2"):
        await world.store.add(Collection(collection_id, ann, f"name of {collection_id}"))
        await world.store.link(CollectionLink(collection_id, "f1", ann))
    other = a_file("f2", "gone")
    first, second = await shown.files([file, other])
    assert first.model_dump() == {
        "id": "f1",
        "name": "f1.txt",
        "user_id": ann,
        "user": "ann@example.org",
        "status": "failed",
        "error": "it is torn",
        "size": 1,
        "content_type": None,
        "checksum": "f1",
        "passages": 2,
        "characters": 9,
        "pages": 3,
        "blank_pages": 2,
        "warning": "2 of its 3 pages have no text (scanned?)",
        "collections": ["name of c1", "name of c2"],
        "updated_at": None,
        "created_at": "1970-01-01T00:00:01Z",
    }
    assert (second.user, second.collections, second.warning) == ("", [], None)
    [member] = await shown.members([(CollectionLink("c1", "f1", ann, origin="/srv", path="a"), file)])
    assert (member.file, member.origin, member.path) == (first, "/srv", "a")


async def test_what_was_counted_is_not_counted_again(tmp_path: Path) -> None:
    world, shown, ann = await views(tmp_path)
    made = Collection("c1", ann, "docs", "All", grants=(Grant("user", "*", "write"),), created_at=1)
    await world.store.add(made)
    await world.shelve(a_file("f1", ann), "text", "c1")
    found = await shown.collections([made, replace(made, file_count=7)])
    assert [each.files for each in found] == [1, 7]
    assert (await shown.collection(made)) == found[0]
    assert (found[0].user, found[0].readers, found[0].writers) == ("ann@example.org", [], ["*"])
    assert (found[0].description, found[0].updated_at, found[0].created_at) == (
        "All",
        None,
        "1970-01-01T00:00:01Z",
    )
