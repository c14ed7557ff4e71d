"""Tests for gatewayd.http.public.chats.lists."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.fakes.storage.chats_site import ChatSite, serving_chats


@pytest.fixture
async def site() -> AsyncIterator[ChatSite]:
    async with serving_chats() as made:
        yield made


async def some(site: ChatSite, *titles: str) -> list[Any]:
    made = []
    for title in titles:
        site.house.accounts.time += 1
        made.append(await site.chat(title))
    return made


async def titles(site: ChatSite, path: str, **more: Any) -> list[str]:
    return [element["title"] for element in await site.ok("GET", path, **more)]


@pytest.mark.parametrize("path", ["/", "", "/list"])
async def test_lists(site: ChatSite, path: str) -> None:
    first, second, third = await some(site, "b", "a", "c")
    await site.chat("other's", site.other)
    await site.ok("POST", f"/{third['id']}/archive")
    assert await site.ok("GET", path) == [
        {
            "id": chat["id"],
            "title": chat["title"],
            "updated_at": chat["updated_at"],
            "created_at": chat["created_at"],
            "last_read_at": None,
        }
        for chat in (second, first)
    ]
    assert await titles(site, f"{path}?sort_by=title&sort_dir=desc") == ["b", "a"]
    assert await titles(site, f"{path}?order_by=title&direction=asc") == ["a", "b"]
    await site.ok("POST", f"/{first['id']}/pin")
    assert await titles(site, path) == ["a"]
    assert await titles(site, f"{path}?include_pinned=true") == ["a", "b"]
    assert await titles(site, "/pinned") == ["b"]
    assert await titles(site, "/archived") == ["c"]
    assert await titles(site, "/archived?query=zzz") == []


async def test_pages(site: ChatSite) -> None:
    for number in range(61):
        site.house.accounts.time += 1
        await site.chat(f"{number}")
    assert [len(await site.ok("GET", path)) for path in ("/", "/?page=1", "/list?page=2")] == [61, 60, 1]
    assert await titles(site, "/?page=2") == ["0"]
    assert await titles(site, "/?page=3") == []
    assert len(await site.ok("GET", "/search?text=a&page=1")) == 60
    assert len(await site.ok("GET", "/search?text=a&page=2")) == 1


@pytest.mark.parametrize("query", ["page=0", "page=x", "sort_by=id", "sort_dir=up", "include_pinned=maybe"])
async def test_bad_queries(site: ChatSite, query: str) -> None:
    assert (await site.call("GET", f"/?{query}"))[0] == 422


async def test_search(site: ChatSite) -> None:
    first, second, third = await some(site, "Herons", "Owls", "Cranes")
    await site.ok("POST", f"/{first['id']}/messages/a1", None, {"content": "In the REEDS"})
    await site.ok("POST", f"/{first['id']}/tags", None, {"name": "Water"})
    await site.ok("POST", f"/{second['id']}/pin")
    await site.ok("POST", f"/{second['id']}/share")
    await site.ok("POST", f"/{third['id']}/archive")
    wanted = {
        "herons": ["Herons"],
        "reeds": ["Herons"],
        "tag:water": ["Herons"],
        "tag:water%20owl": [],
        "pinned:true": ["Owls"],
        "pinned:false": ["Herons"],
        "archived:true": ["Cranes"],
        "shared:true%20ow": ["Owls"],
        "a%00b": [],
        "x" * 1001: [],
    }
    for text, found in wanted.items():
        assert await titles(site, f"/search?text={text}") == found, text
    assert await titles(site, "/search?text=herons", who=site.other) == []
    (shared,) = await site.ok("GET", "/shared")
    assert (shared["title"], shared["share_id"] is not None) == ("Owls", True)


async def test_exports(site: ChatSite) -> None:
    assert await site.ok("GET", "/all") == []
    first, second = await some(site, "a", "b")
    others = await site.chat("c", site.other)
    second = await site.ok("POST", f"/{second['id']}/archive")
    assert await site.ok("GET", "/all") == [second, first]
    assert await site.ok("GET", "/all/archived") == [second]
    every = await site.ok("GET", "/all/db", site.admin)
    assert sorted(chat["id"] for chat in every) == sorted(each["id"] for each in (first, second, others))


async def test_chats_of_a_user(site: ChatSite) -> None:
    await some(site, "a", "b")
    assert await titles(site, f"/list/user/{site.user.id}?page=1", who=site.admin) == ["b", "a"]
    assert await titles(site, "/list/user/nobody", who=site.admin) == []


async def test_administrators_without_access() -> None:
    async with serving_chats(admin_access=False) as site:
        for path in (f"/list/user/{site.user.id}", "/all/db"):
            assert (await site.call("GET", path, site.admin))[0] == 403


async def test_chats_with_a_tag(site: ChatSite) -> None:
    for chat in await some(site, "a", "b", "c"):
        if chat["title"] != "c":
            await site.ok("POST", f"/{chat['id']}/tags", None, {"name": "Two Words"})
    assert [tag["id"] for tag in await site.ok("GET", "/all/tags")] == ["two_words"]
    assert await site.ok("GET", "/all/tags", site.other) == []
    found = await site.ok("POST", "/tags", None, {"name": "two words"})
    assert [element["title"] for element in found] == ["b", "a"]
    found = await site.ok("POST", "/tags", None, {"name": "two words", "skip": 1, "limit": 1})
    assert [element["title"] for element in found] == ["a"]
    assert (await site.call("POST", "/tags", None, {"name": "x", "limit": 0}))[0] == 422
