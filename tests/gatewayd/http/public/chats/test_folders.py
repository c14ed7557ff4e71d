"""Tests for gatewayd.http.public.chats.folders and gatewayd.chats.folders."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.accounts.records import User
from gatewayd.chats import folders
from tests.fakes.storage.chats_site import ChatSite, document, serving_chats

FOLDERS = "/api/v1/folders"


@pytest.fixture
async def site() -> AsyncIterator[ChatSite]:
    async with serving_chats() as made:
        yield made


async def call(
    site: ChatSite, method: str, path: str = "/", body: Any = None, who: User | None = None
) -> Any:
    return await site.site.call(method, FOLDERS + path, who or site.user, body)


async def folder(site: ChatSite, name: str, parent_id: str | None = None, who: User | None = None) -> str:
    status, made = await call(site, "POST", "/", {"name": name, "parent_id": parent_id}, who)
    assert status == 200, made
    return str(made["id"])


async def chat_in(site: ChatSite, folder_id: str, title: str = "Birds") -> str:
    made = await site.ok("POST", "/new", None, {"chat": document(title), "folder_id": folder_id})
    assert made["folder_id"] == folder_id
    return str(made["id"])


async def titles(site: ChatSite, path: str) -> list[str]:
    return [each["title"] for each in await site.ok("GET", path)]


async def forbid(site: ChatSite, section: str, leaf: str) -> None:
    tree = site.site.accounts.permissions.defaults()
    tree[section][leaf] = False
    await site.site.accounts.permissions.set_defaults(tree, "test")


async def test_a_folder(site: ChatSite) -> None:
    body = {"name": " Birds ", "meta": {"icon": "bird"}, "data": {"system_prompt": "Short."}}
    status, made = await call(site, "POST", "/", body)
    assert status == 200
    element = {
        "id": made["id"],
        "name": "Birds",
        "parent_id": None,
        "is_expanded": False,
        "meta": {"icon": "bird"},
        "created_at": made["created_at"],
        "updated_at": made["updated_at"],
    }
    whole = {**element, "user_id": site.user.id, "data": {"system_prompt": "Short."}}
    assert made == whole
    assert await call(site, "GET") == (200, [element])
    assert await call(site, "GET", f"/{made['id']}") == (200, whole)
    site.house.accounts.time += 1
    _, changed = await call(site, "POST", f"/{made['id']}/update", {"name": "Owls", "data": {"files": []}})
    assert (changed["name"], changed["meta"]) == ("Owls", {"icon": "bird"})
    assert changed["data"] == {"system_prompt": "Short.", "files": []}
    assert changed["updated_at"] == made["updated_at"] + 1
    _, changed = await call(site, "POST", f"/{made['id']}/update/expanded", {"is_expanded": True})
    assert changed["is_expanded"]
    assert changed["data"] == {"system_prompt": "Short.", "files": []}


async def test_a_tree_of_folders(site: ChatSite) -> None:
    top, other = await folder(site, "top"), await folder(site, "other")
    below = await folder(site, "below", top)
    deep = await folder(site, "deep", below)
    for target in (top, below, deep):
        status, body = await call(site, "POST", f"/{top}/update/parent", {"parent_id": target})
        assert (status, "inside itself" in body["detail"]) == (409, True)
    assert (await call(site, "POST", f"/{below}/update/parent", {"parent_id": "none"}))[0] == 404
    _, moved = await call(site, "POST", f"/{below}/update/parent", {"parent_id": other})
    assert moved["parent_id"] == other
    _, moved = await call(site, "POST", f"/{below}/update/parent", {"parent_id": None})
    assert moved["parent_id"] is None
    assert (await call(site, "GET", f"/{deep}"))[1]["parent_id"] == below


async def test_names_are_taken_in_one_place(site: ChatSite) -> None:
    top = await folder(site, "Öl und")
    below = await folder(site, "öl und", top)
    assert (await call(site, "POST", "/", {"name": "ÖL_UND"}))[0] == 409
    assert (await call(site, "POST", f"/{below}/update/parent", {}))[0] == 409
    other = await folder(site, "other")
    assert (await call(site, "POST", f"/{other}/update", {"name": "Öl Und"}))[0] == 409
    assert (await call(site, "POST", f"/{top}/update", {"name": "ÖL UND"}))[0] == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"name": " "}, 400),
        ({"name": "x" * 256}, 400),
        ({"name": "a\nb"}, 400),
        ({"name": "\u202e" * 3, "parent_id": "f" * 300}, 404),
        ({"name": "x", "parent_id": "\x00"}, 404),
        ({"name": "x", "meta": {"icon": "x" * 5000}}, 413),
        ({"name": "x", "data": {"a": "x" * 70_000}}, 413),
        ({"name": "x", "data": []}, 422),
    ],
)
async def test_bad_folders(site: ChatSite, body: Any, status: int) -> None:
    assert (await call(site, "POST", "/", body))[0] == status
    assert await call(site, "GET") == (200, [])


async def test_folders_are_bounded(site: ChatSite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_FOLDERS", 5)
    monkeypatch.setattr(folders, "MAX_FOLDER_DEPTH", 2)
    top = await folder(site, "1")
    below = await folder(site, "2", top)
    assert (await call(site, "POST", "/", {"name": "3", "parent_id": below}))[0] == 400
    pair = await folder(site, "3")
    await folder(site, "4", pair)
    status, body = await call(site, "POST", f"/{pair}/update/parent", {"parent_id": top})
    assert (status, body["error"]["param"]) == (400, "parent_id")
    await folder(site, "5")
    assert (await call(site, "POST", "/", {"name": "6"}))[0] == 413


async def test_chats_of_a_folder(site: ChatSite) -> None:
    top = await folder(site, "Water birds")
    below = await folder(site, "below", top)
    await chat_in(site, top, "Herons")
    await chat_in(site, below, "Owls")
    loose = await site.chat("Cranes")
    assert await titles(site, f"/folder/{top}/list") == ["Herons"]
    assert await titles(site, f"/folder/{top}/list?page=2") == []
    assert sorted(await titles(site, f"/folder/{top}")) == ["Herons", "Owls"]
    assert await titles(site, "/") == ["Cranes"]
    assert len(await titles(site, "/?include_folders=true")) == 3
    assert await titles(site, "/search?text=folder:water_birds") == ["Herons"]
    site.house.told.clear()
    moved = await site.ok("POST", f"/{loose['id']}/folder", None, {"folder_id": below})
    assert (moved["folder_id"], moved["updated_at"]) == (below, loose["updated_at"])
    [(target, event)] = site.house.told
    assert target.user_id == site.user.id
    assert event == {"type": "chat:list", "data": {"chat_id": loose["id"], "folder_id": below}}
    copy = await site.ok("POST", f"/{loose['id']}/clone", None, {})
    assert copy["folder_id"] == below
    assert (await site.ok("POST", f"/{loose['id']}/folder", None, {}))["folder_id"] is None


@pytest.mark.parametrize("keeps", [True, False])
async def test_removal(site: ChatSite, *, keeps: bool) -> None:
    top = await folder(site, "top")
    below = await folder(site, "below", top)
    await chat_in(site, top, "Herons")
    await chat_in(site, below, "Owls")
    await site.chat("Cranes")
    assert await call(site, "DELETE", f"/{top}" + "?delete_contents=false" * keeps) == (200, True)
    assert await call(site, "GET") == (200, [])
    assert sorted(await titles(site, "/")) == ["Cranes", *["Herons", "Owls"] * keeps]
    assert {chat.folder_id for chat in site.house.state.chats.values()} == {None}


async def test_removal_of_chats_needs_the_permission(site: ChatSite) -> None:
    await forbid(site, "chat", "delete")
    full, empty = await folder(site, "full"), await folder(site, "empty")
    await chat_in(site, full)
    assert (await call(site, "DELETE", f"/{full}"))[0] == 403
    assert len((await call(site, "GET"))[1]) == 2
    assert (await call(site, "DELETE", f"/{empty}"))[0] == 200
    assert (await call(site, "DELETE", f"/{full}?delete_contents=false"))[0] == 200
    assert await titles(site, "/") == ["Birds"]


async def test_folders_need_the_permission(site: ChatSite) -> None:
    await forbid(site, "features", "folders")
    status, body = await call(site, "GET")
    assert (status, "features.folders" in body["detail"]) == (403, True)
    assert (await call(site, "POST", "/", {"name": "x"}))[0] == 403
    assert (await call(site, "GET", who=site.admin))[0] == 200


async def test_folders_of_another_user(site: ChatSite) -> None:
    theirs = await folder(site, "theirs", who=site.other)
    mine = await folder(site, "mine")
    chat_id = (await site.chat())["id"]
    for method, path, body in (
        ("GET", f"/{theirs}", None),
        ("POST", f"/{theirs}/update", {"name": "x"}),
        ("POST", f"/{theirs}/update/parent", {"parent_id": None}),
        ("POST", f"/{mine}/update/parent", {"parent_id": theirs}),
        ("POST", f"/{theirs}/update/expanded", {"is_expanded": True}),
        ("POST", "/", {"name": "x", "parent_id": theirs}),
        ("DELETE", f"/{theirs}", None),
        ("DELETE", f"/{theirs}?delete_contents=false", None),
    ):
        assert (await call(site, method, path, body))[0] == 404, path
        assert (await call(site, method, path, body, site.admin))[0] == 404, path
    for method, path, body in (
        ("POST", "/new", {"chat": document(), "folder_id": theirs}),
        ("POST", f"/{chat_id}/folder", {"folder_id": theirs}),
        ("GET", f"/folder/{theirs}", None),
        ("GET", f"/folder/{theirs}/list", None),
    ):
        assert (await site.call(method, path, None, body))[0] == 404, path
    assert (await site.call("POST", f"/{chat_id}/folder", site.other, {"folder_id": theirs}))[0] == 404
    assert (await site.call("POST", f"/{chat_id}/folder", site.admin, {"folder_id": None}))[0] == 403
    assert await call(site, "GET", who=site.other) == (200, [(await call(site, "GET", who=site.other))[1][0]])


async def test_changes_are_announced(site: ChatSite) -> None:
    chat = await site.chat()
    gone = (await site.chat())["id"]
    top = await folder(site, "top")
    site.house.told.clear()
    await call(site, "POST", f"/{top}/update", {"name": "x"})
    await site.ok("POST", f"/{chat['id']}", None, {"chat": {"title": "New"}})
    await site.ok("POST", f"/{chat['id']}/pin")
    await site.ok("POST", f"/{chat['id']}/archive")
    await site.ok("DELETE", f"/{gone}", site.admin)
    await site.ok("POST", "/archive/all")
    told = [(target.user_id, event["type"], event["data"]["chat_id"]) for target, event in site.house.told]
    ids = [None, chat["id"], chat["id"], chat["id"], gone, None]
    assert told == [(site.user.id, "chat:list", chat_id) for chat_id in ids]
