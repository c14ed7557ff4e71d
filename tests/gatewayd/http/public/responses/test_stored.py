"""Tests for gatewayd.http.public.responses.stored: reading, deleting and listing."""

from collections.abc import AsyncIterator

import pytest

from gatewayd.http.routes import BASES
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.response_events import parse
from tests.fakes.providers.upstream import json_reply
from tests.gatewayd.http.public.responses.door import PATH, Door, opened


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with opened() as made:
        yield made


async def test_another_users_response_is_not_there_under_any_alias(door: Door) -> None:
    made = await door.ask()
    for base in BASES:
        for method, tail in (("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items")):
            path = f"{base}/responses/{made['id']}{tail}"
            assert (await door.client.request(method, path)).status == 401
            reply = await door.client.request(method, path, headers=bearer("user"))
            assert (reply.status, (await reply.json())["error"]["type"]) == (404, "not_found_error")
        assert (
            await door.client.get(f"{base}/responses/{made['id']}", headers=bearer("admin"))
        ).status == 200


async def test_a_deleted_response_is_gone(door: Door) -> None:
    made = await door.ask()
    deleted = await door.get(f"/{made['id']}", method="DELETE")
    assert deleted == (200, {"id": made["id"], "object": "response", "deleted": True})
    for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "?stream=true"), ("GET", "/input_items")):
        assert (await door.get(f"/{made['id']}{tail}", method=method))[0] == 404


async def test_an_expired_response_is_gone_before_it_is_pruned(door: Door) -> None:
    made = await door.ask()
    door.clock[0] += 7 * 86_400
    assert (await door.get(f"/{made['id']}"))[0] == 404


async def test_a_whole_answer_is_replayed_as_events(door: Door) -> None:
    made = await door.ask()
    for after, first in (("", 0), ("&starting_after=2", 3)):
        reply = await door.client.get(f"{PATH}/{made['id']}?stream=true{after}", headers=bearer("admin"))
        events = parse(await reply.read())
        assert events[-1]["response"] == made
        assert events[0]["sequence_number"] == first


async def test_encrypted_reasoning_is_shown_only_if_asked_for(door: Door) -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    door.fake.script(json_reply({"content": [thought, {"type": "text", "text": "a"}]}))
    made = await door.ask("claude.m")
    assert (await door.get(f"/{made['id']}"))[1] == made
    for name in ("include", "include[]"):
        _, shown = await door.get(f"/{made['id']}?{name}=reasoning.encrypted_content")
        assert shown["output"][0]["encrypted_content"].startswith("sealed:")
    assert "encrypted_content" not in str(made)


async def test_only_background_responses_can_be_cancelled(door: Door) -> None:
    made = await door.ask()
    status, refusal = await door.get(f"/{made['id']}/cancel", method="POST")
    assert (status, refusal["error"]["param"]) == (400, "id")
    assert (await door.get("/resp_none/cancel", method="POST"))[0] == 404


async def test_input_items_are_paged(door: Door) -> None:
    texts = [str(number) for number in range(5)]
    made = await door.ask(input=[{"role": "user", "content": text} for text in texts])

    async def read(query: str) -> tuple[list[str], bool, str]:
        _, page = await door.get(f"/{made['id']}/input_items?{query}")
        return [item["content"][0]["text"] for item in page["data"]], page["has_more"], page["last_id"]

    assert (await read(""))[:2] == (texts[::-1], False)
    first, has_more, last = await read("order=asc&limit=2")
    assert (first, has_more) == (["0", "1"], True)
    assert (await read(f"order=asc&limit=3&after={last}"))[:2] == (["2", "3", "4"], False)


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?stream=maybe", "stream"),
        ("?starting_after=-1", "starting_after"),
        ("?starting_after=x", "starting_after"),
        ("/input_items?limit=0", "limit"),
        ("/input_items?limit=1e9", "limit"),
        ("/input_items?order=odd", "order"),
        ("/input_items?after=none", "after"),
    ],
)
async def test_a_bad_query_is_refused_by_its_name(door: Door, query: str, param: str) -> None:
    made = await door.ask()
    status, refusal = await door.get(f"/{made['id']}{query}")
    assert (status, refusal["error"]["param"]) == (422, param)


@pytest.mark.parametrize("odd", ["x" * 3000, "%00", "a%2Fb", "%F0%9F%90%A7", "resp_' OR 1"])
async def test_an_odd_id_is_not_there(door: Door, odd: str) -> None:
    assert (await door.get(f"/{odd}"))[0] == 404
