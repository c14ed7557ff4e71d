"""Tests for gatewayd.http.public.chats.branches and gatewayd.chats.branches."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatewayd.events.records import EventTarget
from tests.fakes.storage.chats_site import ChatSite, node, serving_chats


@pytest.fixture
async def site() -> AsyncIterator[ChatSite]:
    async with serving_chats() as made:
        yield made


async def tree(site: ChatSite, current: str = "e", **parents: str | None) -> str:
    """Store a chat of messages with these parents and return its id."""
    messages = {name: node(name, parent, content=name) for name, parent in parents.items()}
    history = {"messages": messages, "currentId": current}
    return str((await site.ok("POST", "/new", None, {"chat": {"title": "T", "history": history}}))["id"])


FORKED: dict[str, Any] = {"a": None, "b": "a", "c": "b", "d": "a", "e": "d"}


async def test_a_page_of_the_current_branch(site: ChatSite) -> None:
    chat_id = await tree(site, **FORKED)
    page = await site.ok("GET", f"/{chat_id}/branch")
    assert [message["id"] for message in page["messages"]] == ["a", "d", "e"]
    assert (page["leaf_id"], page["has_earlier"], page["count"], page["event_id"]) == (
        "e",
        False,
        3,
        "b00t-7",
    )
    assert page["chat"]["title"] == "T"
    assert not {"history", "messages"} & set(page["chat"]["chat"])
    root, fork, _ = page["messages"]
    assert (root["childrenIds"], root["siblingIds"], root["descendantCount"]) == (["b", "d"], ["a"], 4)
    assert (fork["parentId"], fork["siblingIds"], fork["descendantCount"]) == ("a", ["b", "d"], 1)


async def test_pages_of_another_branch(site: ChatSite) -> None:
    chat_id = await tree(site, **FORKED)
    page = await site.ok("GET", f"/{chat_id}/branch?through=b&limit=2")
    assert ([each["id"] for each in page["messages"]], page["has_earlier"]) == (["b", "c"], True)
    # A message of the current branch does not lead away from it.
    page = await site.ok("GET", f"/{chat_id}/branch?through=a")
    assert page["leaf_id"] == "e"
    page = await site.ok("GET", f"/{chat_id}/branch?through=c&before=b&limit=2")
    assert ([each["id"] for each in page["messages"]], page["has_earlier"]) == (["a"], False)


@pytest.mark.parametrize(
    "query", ["through=x", "before=c", "through=%00", "through=b&before=e", "through=a&before=b"]
)
async def test_a_message_outside_the_branch(site: ChatSite, query: str) -> None:
    chat_id = await tree(site, **FORKED)
    assert (await site.call("GET", f"/{chat_id}/branch?{query}"))[0] == 404


@pytest.mark.parametrize("limit", ["0", "201", "x", "-1"])
async def test_a_page_is_bounded(site: ChatSite, limit: str) -> None:
    chat_id = await tree(site, **FORKED)
    status, told = await site.call("GET", f"/{chat_id}/branch?limit={limit}")
    assert (status, "limit" in str(told)) == (422, True)


async def test_parents_in_a_circle_and_orphans_still_make_a_branch(site: ChatSite) -> None:
    chat_id = await tree(site, "c", a="c", b="a", c="b", lost="gone")
    page = await site.ok("GET", f"/{chat_id}/branch")
    assert sorted(message["id"] for message in page["messages"]) == ["a", "b", "c"]
    page = await site.ok("GET", f"/{chat_id}/branch?through=lost")
    assert [message["id"] for message in page["messages"]] == ["lost"]


async def test_an_empty_chat_has_an_empty_branch(site: ChatSite) -> None:
    chat_id = await tree(site)
    page = await site.ok("GET", f"/{chat_id}/branch")
    assert (page["messages"], page["leaf_id"], page["count"]) == ([], None, 0)


async def test_a_change_with_a_short_reply(site: ChatSite) -> None:
    chat_id = await tree(site, **FORKED)
    change = {"history": {"currentId": "c", "messages": {"a": {"favorite": True}}}}
    assert await site.ok("POST", f"/{chat_id}/branch", None, {"chat": change}) is True
    page = await site.ok("GET", f"/{chat_id}/branch")
    assert [message["id"] for message in page["messages"]] == ["a", "b", "c"]
    assert (page["messages"][0]["favorite"], page["messages"][0]["content"]) == (True, "a")
    assert [event["type"] for _, event in site.house.told][1:] == ["chat:reload", "chat:list"]
    await site.ok("POST", f"/{chat_id}/branch", None, {"chat": {"title": "New"}})
    assert [event["type"] for _, event in site.house.told][3:] == ["chat:list"]
    assert (await site.call("POST", f"/{chat_id}/branch", site.admin, {"chat": change}))[0] == 403


async def test_a_branch_is_removed_whole(site: ChatSite) -> None:
    chat_id = await tree(site, **FORKED)
    assert await site.ok("DELETE", f"/{chat_id}/branch/d") == {"removed": 2}
    told = (EventTarget(site.user.id, chat_id), {"type": "chat:reload", "data": {"chat_id": chat_id}})
    assert site.house.told[-1] == told
    page = await site.ok("GET", f"/{chat_id}/branch")
    assert [message["id"] for message in page["messages"]] == ["a"]
    assert page["messages"][0]["childrenIds"] == ["b"]
    assert (await site.call("DELETE", f"/{chat_id}/branch/d"))[0] == 404
    assert await site.ok("DELETE", f"/{chat_id}/branch/a") == {"removed": 3}
    assert (await site.ok("GET", f"/{chat_id}/branch"))["messages"] == []


async def test_foreign_branches_are_neither_shown_nor_removed(site: ChatSite) -> None:
    chat_id = await tree(site, **FORKED)
    assert (await site.call("GET", f"/{chat_id}/branch", site.other))[0] == 404
    assert (await site.call("DELETE", f"/{chat_id}/branch/a", site.other))[0] == 404
    # Administrators may read other chats, not change them.
    assert (await site.call("GET", f"/{chat_id}/branch", site.admin))[0] == 200
    assert (await site.call("DELETE", f"/{chat_id}/branch/a", site.admin))[0] == 403


async def test_a_running_answer_has_its_text_so_far(site: ChatSite) -> None:
    chat_id = await tree(site, **FORKED)
    nodes = {"e": {"done": False}, "d": {"done": True}}
    await site.ok("POST", f"/{chat_id}/branch", None, {"chat": {"history": {"messages": nodes}}})
    site.house.texts = {"e": "e and more", "d": "d and more"}
    page = await site.ok("GET", f"/{chat_id}/branch")
    assert [message["content"] for message in page["messages"]] == ["a", "d", "e and more"]
