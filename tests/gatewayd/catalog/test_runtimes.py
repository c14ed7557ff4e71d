"""Tests for gatewayd.catalog.runtimes."""

import orjson
import pytest

from gatewayd.catalog.interfaces import CallContext, ForwardedAnswer
from gatewayd.catalog.runtimes import with_model_name
from gatewayd.errors import ErrorKind, GatewayError
from tests.fakes.daemons.runtime_site import ADMIN, USER, paths, two_runtimes
from tests.fakes.providers.models import FakeSource, make_model
from tests.fakes.providers.upstream import Reply, json_reply

WHO = CallContext("r1", ADMIN.user_id)


async def read(answer: ForwardedAnswer) -> bytes:
    data = b"".join([read async for read in answer])
    await answer.aclose()
    return data


@pytest.mark.parametrize("other", ["Model", "MODEL", "mODEL", "Name", "NAME"])
def test_a_second_name_in_another_case_is_not_passed_on(other: str) -> None:
    assert with_model_name({other: "secret", "model": "m", "stream": True}, "own") == {
        "model": "own",
        "stream": True,
    }


def test_the_old_field_of_the_name_is_kept_in_step() -> None:
    assert with_model_name({"name": "m", "model": "secret"}, "own") == {"model": "own", "name": "own"}


async def test_find_gives_the_runtimes_that_have_a_model() -> None:
    async with two_runtimes(prefix="") as scene:
        assert [host.index for host in (await scene.runtimes.find("shared", ADMIN)).hosts] == [0, 1]
        assert [host.index for host in (await scene.runtimes.find("shared", ADMIN, 1)).hosts] == [1]
        assert [host.index for host in (await scene.runtimes.find("near:1b", ADMIN)).hosts] == [0]


@pytest.mark.parametrize(
    ("name", "index"),
    [("near:1b", None), ("near:1b", 0), ("shared", None), ("shared:latest", 0), ("no", None), ("lone", 0)],
)
async def test_what_may_not_be_used_is_as_absent_as_what_is_not_there(name: str, index: int | None) -> None:
    async with two_runtimes() as scene:
        with pytest.raises(GatewayError) as caught:
            await scene.runtimes.find(name, USER, index)
        assert (caught.value.kind, caught.value.message) == (ErrorKind.NOT_FOUND, f"model {name!r} not found")


@pytest.mark.parametrize("index", [1, 2, 999])
async def test_a_named_runtime_must_have_the_model(index: int) -> None:
    async with two_runtimes() as scene:
        with pytest.raises(GatewayError, match="model 'near:1b' not found"):
            await scene.runtimes.find("near:1b", ADMIN, index)


async def test_a_model_of_another_source_has_no_hosts() -> None:
    async with two_runtimes(FakeSource("acme", [make_model("gpt", "acme")])) as scene:
        found = await scene.runtimes.find("gpt", ADMIN)
        assert (found.model.id, found.hosts) == ("gpt", [])


async def test_a_source_after_a_runtime_does_not_count_among_them() -> None:
    async with two_runtimes(FakeSource("acme")) as scene:
        assert [(item.index, item.source.name) for item in scene.runtimes.all()] == [(0, "near"), (1, "far")]


async def test_forward_names_the_model_as_the_runtime_does() -> None:
    async with two_runtimes() as scene:
        found = await scene.runtimes.find("far.lone", ADMIN)
        provider, answer = await scene.runtimes.forward(
            found, "/api/chat", {"model": "far.lone", "stream": False}, WHO
        )
        assert orjson.loads(await read(answer))["message"]["content"] == "Hello from lone:latest"
        assert provider == "far"
        assert scene.far.requests[0].json == {"model": "lone:latest", "stream": False}


async def test_runtimes_that_have_a_model_take_turns() -> None:
    async with two_runtimes(prefix="") as scene:
        found = await scene.runtimes.find("shared", ADMIN)
        for _ in range(4):
            _, answer = await scene.runtimes.forward(found, "/api/chat", {"model": "shared"}, WHO)
            await answer.aclose()
        assert (len(scene.near.requests), len(scene.far.requests)) == (2, 2)


async def test_another_runtime_answers_for_one_that_is_away() -> None:
    async with two_runtimes(prefix="") as scene:
        found = await scene.runtimes.find("shared", ADMIN)
        scene.near.chats = [json_reply({"error": "overloaded"}, 503)]
        for _ in range(2):
            provider, answer = await scene.runtimes.forward(found, "/api/chat", {"model": "shared"}, WHO)
            await answer.aclose()
            assert provider == "far"
        assert (len(scene.near.requests), len(scene.far.requests)) == (1, 2)


async def test_a_runtime_that_was_not_reached_is_asked_last_for_a_while() -> None:
    async with two_runtimes(prefix="") as scene:
        found = await scene.runtimes.find("shared", ADMIN)
        scene.near.chats = [json_reply({"error": "overloaded"}, 503)]
        for _ in range(4):
            _, answer = await scene.runtimes.forward(found, "/api/chat", {"model": "shared"}, WHO)
            await answer.aclose()
        assert (len(scene.near.requests), len(scene.far.requests)) == (1, 4)


async def test_the_last_failure_is_told_when_all_are_away() -> None:
    async with two_runtimes(prefix="") as scene:
        found = await scene.runtimes.find("shared", ADMIN)
        scene.near.chats = [json_reply({"error": "overloaded"}, 503)]
        scene.far.chats = [json_reply({"error": "overloaded"}, 503)]
        with pytest.raises(GatewayError, match="'far'"):
            await scene.runtimes.forward(found, "/api/chat", {"model": "shared"}, WHO)


async def test_a_refusal_is_not_tried_elsewhere() -> None:
    async with two_runtimes(prefix="") as scene:
        found = await scene.runtimes.find("shared", ADMIN)
        scene.near.script(json_reply({"error": "bad options"}, 400))
        with pytest.raises(GatewayError, match="bad options"):
            await scene.runtimes.forward(found, "/api/chat", {"model": "shared"}, WHO)
        assert scene.far.requests == []


async def test_what_an_administrator_names_without_a_tag_is_the_latest() -> None:
    async with two_runtimes(prefix="") as scene:
        for name in ("lone", "lone:latest"):
            assert (await scene.runtimes.place(name)).index == 1
        assert (await scene.runtimes.place("lone:1b")).index == 0


async def test_tags_are_merged_and_name_the_runtimes() -> None:
    async with two_runtimes(FakeSource("acme", [make_model("gpt", "acme")]), prefix="") as scene:
        tags = await scene.runtimes.tags(ADMIN)
        assert [(tag["name"], tag["model"], tag["urls"]) for tag in tags] == [
            ("lone:latest", "lone:latest", [1]),
            ("near:1b", "near:1b", [0]),
            ("shared:latest", "shared:latest", [0, 1]),
        ]
        assert tags[0]["details"] == {"family": "fake"}
        assert {tag["connection_type"] for tag in tags} == {"local"}
        assert [tag["urls"] for tag in await scene.runtimes.tags(ADMIN, 0)] == [[0], [0]]


async def test_tags_hide_what_may_not_be_used() -> None:
    async with two_runtimes() as scene:
        assert await scene.runtimes.tags(USER) == []
        await scene.let("far.lone:latest")
        assert [tag["name"] for tag in await scene.runtimes.tags(USER)] == ["far.lone:latest"]
        assert await scene.runtimes.tags(USER, 0) == []
        with pytest.raises(GatewayError, match="cannot find runtime '2'"):
            await scene.runtimes.tags(USER, 2)


async def test_local_models_of_other_sources() -> None:
    models = [
        make_model("small", connection_type="local"),
        make_model("gpt"),
        make_model("near:1b", connection_type="local"),
    ]
    async with two_runtimes(FakeSource("x", models)) as scene:
        assert [model.id for model in await scene.runtimes.locals(ADMIN)] == ["small"]
        assert await scene.runtimes.locals(USER) == []


async def test_loaded_models_are_merged_and_hidden() -> None:
    async with two_runtimes() as scene:
        near = {"models": [{"name": "near:1b", "model": "near:1b", "size_vram": 5}, {"name": "gone"}, 3]}
        scene.near.listings = [json_reply(near)] * 2
        scene.far.listings = [json_reply({"models": [{"name": "lone:latest"}]})] * 2
        assert [(entry["name"], entry["urls"]) for entry in await scene.runtimes.loaded(ADMIN)] == [
            ("near:1b", [0]),
            ("far.lone:latest", [1]),
        ]
        await scene.let("near:1b")
        (entry,) = await scene.runtimes.loaded(USER)
        assert entry == {"name": "near:1b", "model": "near:1b", "size_vram": 5, "urls": [0]}


async def test_a_version_of_any_length_is_compared() -> None:
    async with two_runtimes() as scene:
        scene.near.listings = [json_reply({"version": "9" * 5000})]
        scene.far.listings = [json_reply({"version": "0.12.9"})]
        assert await scene.runtimes.version() == "0.12.9"


async def test_the_lowest_version_counts() -> None:
    async with two_runtimes() as scene:
        scene.near.listings = [json_reply({"version": "0.12.10"})] * 2
        scene.far.listings = [json_reply({"version": "0.12.9-rc1"})]
        assert await scene.runtimes.version() == "0.12.9-rc1"
        assert await scene.runtimes.version(0) == "0.12.10"


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (json_reply({"error": "no"}, 500), "it answered 500"),
        (Reply(steps=[b"garbage"], content_type="application/json"), "not JSON"),
        (json_reply([]), "not a JSON object"),
        (Reply(steps=[b"<html>"], content_type="text/html"), "HTML page"),
    ],
)
async def test_a_runtime_that_fails_is_left_out_unless_all_do(reply: Reply, said: str) -> None:
    async with two_runtimes() as scene:
        scene.near.listings = [reply, reply]
        scene.far.listings = [json_reply({"version": "1.0"}), reply]
        assert await scene.runtimes.version() == "1.0"
        with pytest.raises(GatewayError, match=said) as caught:
            await scene.runtimes.version()
        assert "'near'" in caught.value.message


@pytest.mark.parametrize(
    ("name", "index", "at"),
    [
        ("near", None, 0),
        ("far.lone", None, 1),
        ("far.lone:latest", None, 1),
        ("far.new", None, 1),
        ("new", None, 0),
        ("new", 1, 1),
        ("near:1b", 1, 1),
    ],
)
async def test_where_an_administrator_means(name: str, index: int | None, at: int) -> None:
    async with two_runtimes() as scene:
        assert (await scene.runtimes.place(name, index)).index == at


async def test_nothing_can_be_done_without_a_runtime() -> None:
    async with two_runtimes() as scene:
        scene.catalog.use([FakeSource("acme")])
        with pytest.raises(GatewayError, match="no model runtime is configured"):
            await scene.runtimes.place("m")
        assert await scene.runtimes.version() is None


async def test_refresh_shows_what_changed() -> None:
    async with two_runtimes() as scene:
        scene.near.models = ["new:latest"]
        await scene.runtimes.refresh(scene.runtimes.all()[0])
        assert paths(scene.near) == [("GET", "/api/tags")]
        assert [tag["name"] for tag in await scene.runtimes.tags(ADMIN, 0)] == ["new:latest"]
