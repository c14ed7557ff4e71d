"""Tests for gatewayd.pipeline.documents.attachments."""

import re
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, Role
from gatewayd.catalog.records import Grant
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import FileStatus
from gatewayd.knowledge.retrieval import SearchOptions
from gatewayd.pipeline.documents.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.pipeline.records import ChatRequest
from tests.fakes.documents.collections import World, a_file, build_world, person
from tests.fakes.documents.memory_stores import MemoryFiles

ANN, BOB = person("ann"), person("bob")
QUESTION = "who opens a shell on another machine?"
SSH = "ssh opens a shell on another machine"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return build_world(tmp_path)


def ask(*files: dict[str, Any], content: Any = QUESTION, system: str = "") -> ChatRequest:
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": content})
    return ChatRequest("m", {"model": "m", "messages": messages}, stream=False, files=list(files))


def file(key: str = "f1", **more: Any) -> dict[str, Any]:
    return {"type": "file", "id": key, **more}


async def attach(
    world: World, request: ChatRequest, actor: Actor = ANN, **options: Any
) -> list[dict[str, Any]]:
    attachments = DocumentAttachments(world.documents, AttachmentOptions(**options))
    return await attachments.attach(request, actor)


def said(request: ChatRequest) -> Any:
    return request.body["messages"][-1]["content"]


async def test_documents_of_a_model_that_the_caller_may_not_read_are_not_named(world: World) -> None:
    await world.shelve(a_file("f1", name="ssh.txt"), SSH)
    secret = await world.collection(ANN, "salaries")
    of_model = [
        file("f1"),
        file("gone"),
        {"type": "collection", "id": secret},
        {"type": "collection", "legacy": True, "collection_names": [secret]},
        {"type": "text", "name": "pay", "collection_name": secret},
        {"type": "note", "id": "n1", "name": secret},
    ]
    told = {}
    for actor in (person("boss", role=Role.ADMIN), BOB):
        request = ask(*of_model)
        request.model_files = of_model
        await attach(world, request, actor)
        told[actor.user_id] = request.warnings
    assert told["bob"] == ["cannot use a document of the model: it is not there, or not for the caller"]
    assert [secret in sentence for sentence in told["boss"][:2]] == [False, True]
    assert told["boss"][0].startswith("cannot use file 'gone'")
    # Who names a document knows it.
    request = ask(file("gone"))
    await attach(world, request, BOB)
    assert request.warnings[0].startswith("cannot use file 'gone'")


async def test_a_file_becomes_context_and_a_source(world: World) -> None:
    await world.shelve(a_file("f1", name="ssh.txt"), SSH)
    request = ask(file(status="processed"))
    [source] = await attach(world, request)
    assert source["source"] == {"type": "file", "id": "f1", "status": "processed", "name": "ssh.txt"}
    assert source["document"] == [SSH]
    assert source["metadata"][0]["file_id"] == "f1"
    assert source["distances"] == [1.0]
    element = f'<source id="1" name="ssh.txt" resource-type="file" resource-id="f1">{SSH}</source>'
    assert element in said(request)
    assert said(request).endswith(f"\n{QUESTION}")
    assert request.warnings == []


async def test_collections_and_files_share_numbers_and_passages(world: World) -> None:
    docs = await world.collection(ANN, "manual")
    await world.shelve(a_file("f1"), SSH, docs)
    await world.shelve(a_file("f2"), "a shell opens nothing", docs)
    request = ask({"type": "collection", "id": docs}, file("f2"), file("f1", name="mine"))
    sources = await attach(world, request)
    assert [source["source"]["name"] for source in sources] == ["manual"]
    assert re.findall(r'<source id="(\d)"', said(request)) == ["1", "2"]
    assert request.warnings == []
    assert world.embedder.texts == [QUESTION]


RESULT = {
    "source": {"name": "kit/clock"},
    "document": ["noon in Bern"],
    "metadata": [{"source": "kit/clock", "parameters": {}}],
    "tool_result": True,
}


async def test_what_was_found_elsewhere_stands_before_documents_in_one_context(world: World) -> None:
    await world.shelve(a_file("f1", name="ssh.txt"), SSH)
    request = ask(file())
    attachments = DocumentAttachments(world.documents, AttachmentOptions())
    sources = await attachments.attach(request, ANN, [RESULT])
    assert [source["source"]["name"] for source in sources] == ["kit/clock", "ssh.txt"]
    assert '<source id="1" name="kit/clock">noon in Bern</source>' in said(request)
    assert '<source id="2" name="ssh.txt"' in said(request)
    assert said(request).count(QUESTION) == 1


async def test_what_was_found_elsewhere_needs_no_files(world: World) -> None:
    request = ask()
    attachments = DocumentAttachments(world.documents, AttachmentOptions())
    assert await attachments.attach(request, ANN, [RESULT]) == [RESULT]
    assert "noon in Bern" in said(request)
    silent = ask(content="")
    assert await attachments.attach(silent, ANN, [RESULT]) == [RESULT]
    assert silent.warnings == request.warnings == []


async def test_exact_duplicates_are_dropped(world: World) -> None:
    await world.shelve(a_file("f1"), SSH)
    request = ask(file(a=1, b=2), {"b": 2, "a": 1, "id": "f1", "type": "file"})
    assert len(await attach(world, request)) == 1
    request = ask(file("f9"), file("f9"))
    await attach(world, request)
    assert len(request.warnings) == 1


async def test_nothing_found_is_told_and_inserts_nothing(world: World) -> None:
    await world.shelve(a_file("f1"), "bread and butter")
    request = ask(file())
    assert await attach(world, request, search=SearchOptions(threshold=0.99)) == []
    assert said(request) == QUESTION
    assert request.warnings == ["cannot use file 'f1': nothing in it answers the question"]


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (FileStatus.PENDING, "not finished"),
        (FileStatus.STORED, "without processing"),
        (FileStatus.FAILED, "it is encrypted"),
    ],
)
async def test_unfinished_files_are_told_with_the_reason(
    world: World, status: FileStatus, words: str
) -> None:
    await MemoryFiles(world.library).add(a_file("f1", status=status, error="it is encrypted"))
    for reference in (file(), file(context="full")):
        request = ask(reference)
        assert await attach(world, request) == []
        [warning] = request.warnings
        assert words in warning
        assert said(request) == QUESTION


REFERENCES: tuple[dict[str, Any], ...] = (
    file(),
    file(context="full"),
    {"type": "collection", "id": "DOCS"},
    {"type": "collection", "id": "DOCS", "context": "full"},
    {"type": "collection", "legacy": True, "collection_names": ["DOCS", "file-f1"]},
    {"type": "text", "collection_name": "file-f1"},
    {"type": "text", "collection_name": "DOCS"},
    file("DOCS"),
    {"type": "collection", "id": "f1"},
    {"type": "note", "id": "f1"},
    {"type": "web_search", "collection_name": "DOCS"},
)


@pytest.mark.parametrize("reference", REFERENCES, ids=str)
async def test_foreign_documents_never_leak(world: World, reference: dict[str, Any]) -> None:
    docs = await world.collection(ANN, "docs of ann")
    await world.shelve(a_file("f1", name="secret.txt"), SSH, docs)
    known = {
        name: docs if value == "DOCS" else [docs, "file-f1"] if name == "collection_names" else value
        for name, value in reference.items()
    }
    request = ask(known)
    for options in ({}, {"full_context": True}):
        assert await attach(world, request, BOB, **options) == []
    assert said(request) == QUESTION
    told = " ".join(request.warnings)
    assert request.warnings
    assert "secret" not in told
    assert "of ann" not in told
    assert SSH not in str(request.body)


async def test_shared_documents_are_used(world: World) -> None:
    docs = await world.collection(ANN, "docs", Grant("user", "bob", "read"))
    await world.shelve(a_file("f1"), SSH, docs)
    for reference in (
        file(),
        {"type": "collection", "id": docs},
        {"type": "collection", "legacy": True, "collection_names": [docs, "nowhere"]},
        {"type": "text", "collection_name": "file-f1"},
    ):
        request = ask(reference)
        [source] = await attach(world, request, BOB)
        assert source["document"] == [SSH]
        assert len(request.warnings) == ("legacy" in reference)


@pytest.mark.parametrize(
    "reference",
    [
        {"type": "url", "url": "https://example.org"},
        {"type": "note", "id": "n1"},
        {"type": "x" * 1000, "id": "y" * 1000},
        {"type": "file"},
        {"type": "collection", "id": 3},
        {"type": "text"},
        {"type": "text", "content": "  "},
        {"type": "text", "file": {"data": "x"}},
        {"docs": []},
        {"docs": [3, {"content": 3}, {}]},
        {"id": "x"},
        {},
    ],
    ids=lambda reference: str(reference)[:40],
)
async def test_unusable_references_are_told_in_short(world: World, reference: dict[str, Any]) -> None:
    request = ask(reference)
    assert await attach(world, request) == []
    [warning] = request.warnings
    assert warning.startswith("cannot use ")
    assert len(warning) < 400


async def test_references_that_nest_too_deep_are_told(world: World) -> None:
    nested: list[Any] = []
    for _ in range(252):
        nested = [nested]
    request = ask(file(a=nested))
    assert await attach(world, request) == []
    assert "deep" in request.warnings[0]


async def test_texts_and_documents_of_the_caller(world: World) -> None:
    request = ask(
        {"type": "text", "content": "one text", "name": "note"},
        {"type": "text", "file": {"data": {"content": "another text"}}},
        {"docs": [{"content": "a doc", "metadata": {"source": "web", "x": 1}}, {"content": "b doc"}]},
    )
    sources = await attach(world, request)
    assert [source["document"] for source in sources] == [["one text"], ["another text"], ["a doc", "b doc"]]
    assert [source["source"]["name"] for source in sources] == ["note", "text", "documents"]
    assert sources[0]["metadata"] == [{"file_id": None, "name": "note", "source": "note"}]
    assert sources[2]["metadata"] == [{"source": "web", "x": 1}, {}]
    assert all("content" not in source["source"] for source in sources)
    assert not any("distances" in source for source in sources)
    assert re.findall(r'<source id="(\d)"', said(request)) == ["1", "2", "3", "4"]
    assert world.space.asked == 0
    assert request.warnings == []


async def test_whole_documents_up_to_the_limit(world: World) -> None:
    docs = await world.collection(ANN, "manual")
    await world.shelve(a_file("f1"), "one " * 200, docs)
    await world.shelve(a_file("f2"), "two " * 200)
    request = ask({"type": "collection", "id": docs, "context": "full"}, file("f2", context="full"))
    one, two = await attach(world, request, full_context_limit=1000)
    assert (one["document"], two["document"]) == (["one " * 200], ["two " * 50])
    assert "distances" not in one
    assert "only the first 200 of its 800" in request.warnings[0]
    request = ask(file("f2"))
    [source] = await attach(world, request, full_context=True)
    assert source["document"] == ["two " * 200]
    assert world.space.asked == 0


async def test_images_stay_beside_the_context(world: World) -> None:
    await world.shelve(a_file("f1"), SSH)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    request = ask(file(), content=[image, {"type": "text", "text": QUESTION}])
    await attach(world, request)
    assert said(request)[0] == image
    assert said(request)[1]["text"].endswith(f"\n{QUESTION}")
    assert SSH in said(request)[1]["text"]


async def test_the_context_can_go_to_the_system_message(world: World) -> None:
    await world.shelve(a_file("f1"), SSH)
    request = ask(file(), system="be kind")
    await attach(world, request, system_context=True)
    assert said(request) == QUESTION
    first = request.body["messages"][0]["content"]
    assert first.startswith("be kind\n\n")
    assert SSH in first


async def test_the_configured_template(world: World) -> None:
    await world.shelve(a_file("f1"), "opens {{QUERY}} a shell")
    request = ask(file())
    await attach(world, request, template="A {{CONTEXT}}B [query] C")
    assert said(request) == (
        'A <source id="1" name="f1.txt" resource-type="file" resource-id="f1">'
        "opens {{QUERY}} a shell</source>\n"
        f"B {QUESTION} C\n{QUESTION}"
    )


@pytest.mark.parametrize("content", ["", "  ", [], [{"type": "image_url", "image_url": {"url": "x"}}], None])
async def test_without_a_question_nothing_is_searched_and_that_is_told(world: World, content: Any) -> None:
    await world.shelve(a_file("f1"), SSH)
    request = ask(file(), content=content)
    assert await attach(world, request) == []
    assert "no user message" in request.warnings[0]
    assert said(request) == content


async def test_a_model_that_is_down_is_told_once(world: World) -> None:
    docs = await world.collection(ANN, "manual")
    await world.shelve(a_file("f1"), SSH, docs)
    await world.shelve(a_file("f2"), "a shell of a nut")
    world.embedder.failures += [GatewayError(ErrorKind.UPSTREAM_UNREACHABLE, "cannot reach the model")] * 9
    request = ask({"type": "collection", "id": docs}, file("f2"))
    assert len(await attach(world, request)) == 2
    [warning] = request.warnings
    assert "cannot reach the model" in warning


async def test_an_empty_collection_is_told(world: World) -> None:
    docs = await world.collection(ANN)
    request = ask({"type": "collection", "id": docs})
    assert await attach(world, request) == []
    assert "no completed files" in request.warnings[0]


async def test_a_deleted_file_is_told(world: World) -> None:
    await world.shelve(a_file("f1"), SSH)
    await world.holdings.files.remove(ANN, "f1")
    request = ask(file())
    assert await attach(world, request) == []
    assert "'f1'" in request.warnings[0]


async def test_a_database_that_is_down_fails_the_request(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*given: object) -> None:
        raise GatewayError(ErrorKind.UNAVAILABLE, "cannot read: locked")

    monkeypatch.setattr(world.holdings.files, "get", broken)
    with pytest.raises(GatewayError):
        await attach(world, ask(file()))


async def test_too_many_references_are_cut_and_that_is_told(world: World) -> None:
    request = ask(*({"type": "text", "content": f"text {number}"} for number in range(101)))
    assert len(await attach(world, request)) == 100
    assert len(request.warnings) == 1
