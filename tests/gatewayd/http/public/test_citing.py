"""One question about documents through every dialect: the same context, sources and warnings."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.citation_site import FILES, QUESTION, REQUESTS, TEXT, Place, gateway, sources_of
from tests.fakes.documents.collections import a_file, build_world
from tests.fakes.providers.upstream import json_reply, ollama_reply

each_dialect = pytest.mark.parametrize("dialect", REQUESTS)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    world = build_world(tmp_path)
    await world.shelve(a_file("f1", name="ssh.txt"), TEXT)
    async with gateway(world) as made:
        yield made


def check(place: Place, sources: Any, warning: str) -> None:
    [source] = sources
    assert source["source"] == {"type": "file", "id": "f1", "name": "ssh.txt"}
    assert source["document"] == [TEXT]
    assert source["metadata"][0]["source"] == "ssh.txt"
    assert source["distances"] == [1.0]
    assert "'gone'" in warning
    said = str(place.source.asked[-1]["messages"])
    assert f">{TEXT}</source>" in said
    assert QUESTION in said
    assert "files" not in place.source.asked[-1]


@each_dialect
async def test_a_whole_answer_has_the_sources(place: Place, dialect: str) -> None:
    answer, warning = await place.ask(dialect, stream=False)
    assert "sources" in answer
    check(place, answer["sources"], warning)


@each_dialect
async def test_a_stream_has_them_in_its_first_object(place: Place, dialect: str) -> None:
    first, *rest, warning = await place.ask(dialect, stream=True)
    check(place, sources_of(first), warning)
    assert rest
    assert not any(sources_of(each) for each in rest)
    if dialect == "openai":
        assert first["choices"] == []
    if dialect == "messages":
        assert first["type"] == "message_start"


async def test_sources_stand_first_in_a_completion(place: Place) -> None:
    answer, _ = await place.ask("openai", stream=False)
    assert next(iter(answer)) == "sources"


@each_dialect
@pytest.mark.parametrize("stream", [False, True])
async def test_without_anything_found_there_are_none(place: Place, dialect: str, stream: bool) -> None:
    first, *_, warning = await place.ask(dialect, stream=stream, files=[FILES[1]])
    assert "'gone'" in warning
    assert "sources" not in str(first)
    assert TEXT not in str(place.source.asked[-1])


async def test_a_runtime_s_own_model_gets_the_documents_too(place: Place) -> None:
    place.near.script(json_reply(ollama_reply("ssh")))
    answer, warning = await place.ask("chat", stream=False, model="near:1b")
    assert answer["message"]["content"] == "ssh"
    assert answer["sources"][0]["document"] == [TEXT]
    assert "'gone'" in warning
    assert TEXT in str(place.near.requests[-1])
