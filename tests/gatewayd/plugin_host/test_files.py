"""Tests for gatewayd.plugin_host.files."""

from typing import Any

import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.knowledge.collections import NewCollection
from gatewayd.plugins.interfaces import HostUpload
from tests.fakes.plugins.host_services import Hosting

TEXT = "The heron stands in the water."


async def store(made: Hosting, **fields: Any) -> Any:
    upload = HostUpload(**{"name": "a.txt", "content": TEXT.encode(), "content_type": "text/plain", **fields})
    return await made.host.files.store(made.ann.id, upload)


async def test_a_stored_file(made: Hosting) -> None:
    file = await store(made, meta={"from": "a tool"})
    files = made.host.files
    assert (file["user_id"], file["filename"], file["data"]) == (made.ann.id, "a.txt", {})
    assert (file["meta"]["size"], file["meta"]["data"]) == (len(TEXT), {"from": "a tool"})
    path = await files.path(file["id"])
    assert path is not None
    assert path.read_text() == TEXT
    found = await files.find(file["id"])
    assert found == {**file, "data": {"content": ""}}
    assert [each["id"] for each in await files.list(made.ann.id)] == [file["id"]]
    assert [each["id"] for each in await files.list(None)] == [file["id"]]
    assert await files.list(made.admin.id) == []


async def test_the_id_that_a_plugin_chose(made: Hosting) -> None:
    file = await store(made, id="0e4d0d5a-1111-4111-8111-111111111111")
    assert file["id"] == "0e4d0d5a-1111-4111-8111-111111111111"
    with pytest.raises(GatewayError) as taken:
        await store(made, id=file["id"], content=b"other")
    assert taken.value.kind is ErrorKind.CONFLICT
    path = await made.host.files.path(file["id"])
    assert path is not None
    assert path.read_text() == TEXT
    for bad in ("../x", "", "a/b", "x" * 65, "incoming/"):
        with pytest.raises(GatewayError) as refused:
            await store(made, id=bad)
        assert (refused.value.kind, refused.value.param) == (ErrorKind.INVALID_REQUEST, "id")


async def test_uploads_take_the_rights_of_the_user(made: Hosting) -> None:
    accounts = made.documents.accounts
    tree = accounts.permissions.defaults()
    tree["chat"]["file_upload"] = False
    await accounts.permissions.set_defaults(tree, "test")
    with pytest.raises(GatewayError) as refused:
        await store(made)
    assert refused.value.kind is ErrorKind.FORBIDDEN
    with pytest.raises(GatewayError) as unknown:
        await made.host.files.store("nobody", HostUpload("a.txt", b"x"))
    assert unknown.value.kind is ErrorKind.NOT_FOUND


async def test_processing_is_waited_for(made: Hosting) -> None:
    file = await store(made)
    done = await made.host.files.process(file["id"], None)
    assert done is not None
    assert done["data"] == {"status": "completed", "content": TEXT}
    assert await made.host.files.process("none", None) is None


async def test_processing_into_a_collection_of_the_owner(made: Hosting) -> None:
    ann, admin = await made.actors.of(made.ann.id), await made.actors.of(made.admin.id)
    assert ann is not None
    assert admin is not None
    collections = made.documents.collections
    own, other = (
        await collections.create(ann, NewCollection("own")),
        await collections.create(admin, NewCollection("b")),
    )
    file = await store(made, process=True)
    assert await made.host.files.process(file["id"], f"file-{file['id']}") is not None
    assert await made.host.files.process(file["id"], own.id) is not None
    assert await collections.count_files(own) == 1
    with pytest.raises(GatewayError) as refused:
        await made.host.files.process(file["id"], other.id)
    assert refused.value.kind is ErrorKind.NOT_FOUND


async def test_data(made: Hosting) -> None:
    file = await store(made)
    files = made.host.files
    changed = await files.set_data(file["id"], {"content": "Two storks.", "status": "failed", "pages": 2})
    assert changed is not None
    assert changed["data"] == {"status": "completed", "content": "Two storks.", "pages": 2}
    again = await files.set_data(file["id"], {"more": 1})
    assert again is not None
    assert again["data"] == {"status": "completed", "content": "Two storks.", "pages": 2, "more": 1}
    assert again["meta"]["data"] == {}
    assert await files.set_data("none", {"content": "x"}) is None
    for blank in ("", None, 7):
        with pytest.raises(GatewayError) as refused:
            await files.set_data(file["id"], {"content": blank})
        assert refused.value.param == "content"


async def test_meta(made: Hosting) -> None:
    file = await store(made, meta={"a": 1})
    files = made.host.files
    changed = await files.set_meta(
        file["id"], {"name": "b.txt", "size": 9, "data": {"b": 2}, "collection_name": "c"}
    )
    assert changed is not None
    assert changed["filename"] == "b.txt"
    added = {"name": "b.txt", "data": {"a": 1, "b": 2}, "collection_name": "c"}
    assert changed["meta"] == {**file["meta"], **added}
    found = await files.find(file["id"])
    assert found is not None
    assert found["meta"] == changed["meta"]
    assert await files.set_meta("none", {"name": "x"}) is None


async def test_what_a_client_keeps_in_the_place_of_plugins(made: Hosting) -> None:
    file = await store(made, meta={"plugins": "mine"})
    assert file["data"] == {}
    changed = await made.host.files.set_data(file["id"], {"more": 1})
    assert changed is not None
    assert changed["data"]["more"] == 1


async def test_removal(made: Hosting) -> None:
    file = await store(made)
    files = made.host.files
    assert await files.remove(file["id"])
    assert not await files.remove(file["id"])
    assert await files.find(file["id"]) is None
    assert await files.path(file["id"]) is None
