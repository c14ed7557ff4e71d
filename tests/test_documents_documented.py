"""gatewayd-documents(7) is complete and true: its rows are tried, the names that the code knows are in it."""

import ast
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

from gatewayctl import failures
from gatewayd.accounts.permissions import BUILTIN
from gatewayd.accounts.records import Role
from gatewayd.assembly import documents as assembly
from gatewayd.assembly import indexes
from gatewayd.chat import attachments
from gatewayd.chat.attachments import AttachmentOptions, DocumentAttachments
from gatewayd.chat.records import ChatRequest
from gatewayd.errors import GatewayError, Kind
from gatewayd.extract.detect import detect
from gatewayd.extract.pool import ExtractorPool, PoolOptions
from gatewayd.extract.readers import READERS
from gatewayd.extract.records import MB, Format, Limits, Source
from gatewayd.http.public import document_shapes, retrieval
from gatewayd.ingest import names
from gatewayd.ingest.files import UploadRules
from gatewayd.ingest.interfaces import WORKER_DIED
from gatewayd.ingest.queue import BEGINNINGS, IngestQueue
from gatewayd.ingest.records import File, FileStatus, Job
from gatewayd.knowledge import directories, grants, members, sync, trees
from gatewayd.knowledge import retrieval as searching
from gatewayd.knowledge.retrieval import SearchOptions
from gatewayd.settings import Settings, definitions
from gatewayd.tasks import Tasks
from gatewayd.upstream.embedders import OllamaEmbedder, OpenAiEmbedder
from gatewayd.vectors import loaded, models
from gatewayd.vectors.local import LocalEmbedder, LocalKind, LocalOptions
from gatewayd.workers import Worker
from tests.fakes import citing, documents
from tests.fakes.documentkinds import GOOD
from tests.fakes.documents_site import DocumentServices, DocumentsSite, serving_documents
from tests.fakes.ingesting import Ingest, ingesting
from tests.fakes.knowledge import World, a_file, build_world, person
from tests.fakes.manual import rows, sentences
from tests.fakes.reading import reading, refusal
from tests.fakes.unreadable import TRIALS
from tests.fakes.uploads import file_part, form

TOP = Path(__file__).parents[1]
PAGE = (TOP / "man" / "gatewayd-documents.7").read_text()
COMMANDS = (TOP / "man" / "gatewayctl.1").read_text().replace(r"\-", "-")


# What is kept ---------------------------------------------------------------------------------------------


def test_every_directory_is_in_the_page() -> None:
    assert {name for name, *_ in rows(PAGE, "directories")} == {
        assembly.BLOBS,
        indexes.FOLDER,
        models.MODELS,
    }


def test_every_state_has_a_true_row() -> None:
    said = {state: shown for state, shown, _ in rows(PAGE, "states")}
    assert said == {
        state.value: document_shapes.show_status(a_file("f", status=state))["status"] for state in FileStatus
    }


# Formats --------------------------------------------------------------------------------------------------


def told_by(folder: Path, kind: Format) -> str:
    """Return what tells that a document is of a kind."""
    path = folder / "blob"
    path.write_bytes(GOOD[kind])
    if detect(Source(path, "wrong.bin", "image/png", Limits())) is not kind:
        assert detect(Source(path, "right.md", None, Limits())) is kind
        return "name"
    return "anything else" if kind is Format.TEXT else "content"


def parts_of(kind: Format) -> str:
    """Return which parts a document of a kind has."""
    document = reading(GOOD[kind], "x.md" if kind is Format.MARKDOWN else "x")
    if all(part.page is not None for part in document.parts):
        return "pages" if kind is Format.PDF else "slides"
    if all(part.label is not None for part in document.parts):
        return "chapters" if kind is Format.EPUB else "sheets"
    assert len(document.parts) == 1
    return "-"


def test_every_kind_of_document_has_a_true_row(tmp_path: Path) -> None:
    tried = {(READERS[kind][2], told_by(tmp_path, kind), parts_of(kind)) for kind in GOOD}
    assert set(GOOD) == set(READERS) == set(Format) - {Format.GZIP}
    assert {tuple(row) for row in rows(PAGE, "formats")} == tried


# Failures -------------------------------------------------------------------------------------------------


def pattern(sentence: str) -> str:
    return re.escape(sentence).replace("@", ".+")


def test_every_reason_in_the_page_has_a_trial() -> None:
    assert set(sentences(PAGE, "reasons")) == set(TRIALS)


@pytest.mark.parametrize("sentence", TRIALS)
def test_a_document_fails_with_the_sentence_of_the_page(sentence: str) -> None:
    data, limits = TRIALS[sentence]
    told = refusal(data, "a.txt", **limits)
    assert re.fullmatch(f"cannot read the [^:]+: {pattern(sentence)}", told), told


def literal(node: ast.expr) -> str | None:
    """Return a text of the source, with X for what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.replace("{}", "X")
    if isinstance(node, ast.JoinedStr):
        pieces = [str(piece.value) if isinstance(piece, ast.Constant) else "X" for piece in node.values]
        # What stands right behind a word may be nothing.
        return re.sub(r"(?<=[a-z])X", "", "".join(pieces))
    return None


def reasons_in(source: str) -> set[str]:
    """Return what a module says about documents that it cannot read."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "DocumentError":
            found.add(literal(node.args[0]))
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            text = literal(node.value) or ""
            found.add(text if re.match(r"it (?:is|holds) |no text was", text) else None)
        if isinstance(node, ast.keyword) and node.arg == "nothing":
            found.add(literal(node.value))
    return {reason for reason in found if reason}


def test_every_reason_of_the_readers_is_in_the_page() -> None:
    sources = sorted((TOP / "gatewayd" / "extract").glob("*.py"))
    reasons = set().union(*(reasons_in(path.read_text()) for path in sources))
    assert len(reasons) > 25
    known = re.compile("|".join(pattern(sentence) for sentence in sentences(PAGE, "reasons")))
    assert [reason for reason in sorted(reasons) if not known.fullmatch(reason)] == []


async def failed(folder: Path, *failures: GatewayError, data: bytes = b"text") -> str:
    """Return the sentence of a file whose attempts end with some failures."""
    async with ingesting(folder) as ingest:
        ingest.extractor.failures = list(failures)
        return (await ingest.completed("a.txt", data)).error or ""


async def begun_often(folder: Path) -> str:
    async with ingesting(folder) as ingest:
        await ingest.queue.close()
        file = await ingest.upload("a.txt", "text")
        await ingest.jobs.put(Job(file.id, attempts=BEGINNINGS, lease_owner="dead", lease_until=1 << 40))
        return await worked(ingest, file)


async def worked(ingest: Ingest, file: File) -> str:
    """Return the sentence of a file that a new queue finds."""
    queue = IngestQueue(ingest.stores, ingest.processor, ingest.tasks, ingest.options, ingest.clock)
    queue.start()
    sentence = (await ingest.files.finished(file.id, 10)).error or ""
    await queue.close()
    return sentence


async def refused_by_pool(folder: Path, data: bytes, *, ends: int = 0, **options: Any) -> str:
    """Return the sentence with which processes refuse a document; with `ends` a signal ends them."""
    path = folder / "blob"
    path.write_bytes(data)
    tasks = Tasks()
    pool = ExtractorPool(PoolOptions(**options), tasks)
    started: list[Worker] = []
    call = Worker.call

    async def noted(worker: Worker, *arguments: Any) -> Any:
        started.append(worker)
        if ends:
            os.kill(worker.pid, ends)
        return await call(worker, *arguments)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(GatewayError) as caught:
        patch.setattr(Worker, "call", noted)
        await pool.extract(path, "x", None)
    assert caught.value.kind is Kind.INVALID_REQUEST
    await pool.close()
    await tasks.close()
    return caught.value.message


def away(code: str | None = None) -> GatewayError:
    return GatewayError(Kind.UNAVAILABLE, "cannot reach it", code=code)


LONG = b"[" + b"[]," * 9_000_000 + b"1]"
FAILURES: Mapping[str, Callable[[Path], Awaitable[str]]] = {
    "the file is empty": lambda folder: failed(folder, data=b""),
    "cannot read the file: it takes more than @ seconds of processor time; split it, or raise "
    "ingest_timeout": lambda folder: refused_by_pool(
        folder, documents.pdf_of_forms(), seconds=1, patience=100
    ),
    "cannot read the file: it takes more than @ MB of memory; split it, or raise "
    "ingest_memory_limit": lambda folder: refused_by_pool(folder, LONG, memory=300_000_000),
    "cannot read the file: its reader @; it is damaged, or it takes more than @ MB of memory "
    "(ingest_memory_limit)": lambda folder: refused_by_pool(folder, b"text", ends=signal.SIGSEGV),
    "gave up after @ attempts: @": lambda folder: failed(folder, *[away()] * 9),
    "processing it ended the worker 3 times": lambda folder: failed(folder, *[away(WORKER_DIED)] * 9),
    "gave up: processing it was begun 20 times and never ended": begun_often,
}


def test_every_failure_in_the_page_has_a_trial() -> None:
    assert sentences(PAGE, "failures") == list(FAILURES)


@pytest.mark.parametrize("sentence", FAILURES)
async def test_a_file_fails_with_the_sentence_of_the_page(sentence: str, tmp_path: Path) -> None:
    told = await FAILURES[sentence](tmp_path)
    assert re.fullmatch(pattern(sentence), told), told


# Limits ---------------------------------------------------------------------------------------------------

LIMITS = {
    "characters of a file's name": names.LONGEST_NAME,
    "characters of a path": trees.LONGEST_PATH,
    "pages of a PDF": Limits().pages,
    "entries of an archive": Limits().entries,
    "MB of an archive's entry": Limits().entry // MB,
    "MB of an archive": Limits().expanded // MB,
    "passages of one answer": searching.MAX_K,
    "references in a chat request": attachments.MOST_REFERENCES,
    "collections in a search": retrieval.MOST_NAMES,
    "entries of a tree to compare": sync.MOST_ENTRIES,
    "directories of a collection": directories.MOST_DIRECTORIES,
    "rows of an access list": grants.MAX_GRANTS,
    "seconds that file/add waits": int(members.LONGEST_WAIT),
}


def test_every_limit_is_in_the_page() -> None:
    assert {label: int(number) for label, number in rows(PAGE, "limits")} == LIMITS
    assert {name for _, name in rows(PAGE, "settings")} <= set(definitions())
    assert f"Up to {loaded.Rules().threshold} passages" in PAGE


# Embedding ------------------------------------------------------------------------------------------------


def engines() -> set[str]:
    (literal_type, *_) = get_args(Settings.model_fields["rag_embedding_engine"].rebuild_annotation())
    return set(get_args(literal_type))


async def test_every_engine_has_a_true_row(tmp_path: Path) -> None:
    listed = {engine: (model, space) for engine, model, space in rows(PAGE, "engines")}
    assert set(listed) == engines()
    for name in models.BUILTINS:
        assert name in listed[""][0]
    tasks = Tasks()
    embedder = LocalEmbedder(LocalOptions(LocalKind.BUILTIN, "minilm", tmp_path), tasks)
    shape = listed[""][1].replace("NAME", "minilm").replace("REVISION", models.MINILM.revision)
    assert (await embedder.space()).name == shape
    await embedder.close()
    await tasks.close()
    remote = {OpenAiEmbedder.kind, OllamaEmbedder.kind}
    local = {kind.value for kind in LocalKind if kind is not LocalKind.BUILTIN}
    for engine in remote | local:
        assert listed[engine][1].startswith(f"{engine}:")


# Chat requests --------------------------------------------------------------------------------------------

ANN = person("ann")
QUESTION = "who opens a shell on another machine?"
SSH = "ssh opens a shell on another machine"
REFERENCES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("file", "id"): {"type": "file", "id": "f1"},
    ("collection", "id"): {"type": "collection", "id": "@"},
    ("text", "content, name"): {"type": "text", "content": SSH, "name": "notes"},
    ("-", "docs"): {"docs": [{"content": SSH, "metadata": {}}]},
}


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = build_world(tmp_path)
    await made.shelve(a_file("f1", name="ssh.txt"), SSH, await made.collection(ANN, "manual"))
    return made


async def ask(world: World, reference: Mapping[str, Any], text: str = QUESTION, **options: Any) -> Any:
    """Return the sources and the warnings for a reference; the id @ is that of the collection."""
    found, _ = await world.collections.list(ANN)
    given = {**reference, "id": found[0].id} if reference.get("id") == "@" else dict(reference)
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = ChatRequest("m", body, stream=False, files=[given])
    sources = await DocumentAttachments(world.documents, AttachmentOptions(**options)).attach(request, ANN)
    return sources, request.warnings


def test_every_reference_in_the_page_has_a_trial() -> None:
    assert [(kind, fields) for kind, fields, _ in rows(PAGE, "references")] == list(REFERENCES)


@pytest.mark.parametrize("row", REFERENCES)
async def test_a_reference_gives_its_text(world: World, row: tuple[str, str]) -> None:
    sources, warnings = await ask(world, REFERENCES[row])
    assert [source["document"] for source in sources] == [[SSH]]
    assert warnings == []


async def empty_collection(world: World) -> Any:
    made = await world.collection(ANN, "empty")
    return await ask(world, {"type": "collection", "id": made})


async def without_model(world: World) -> Any:
    world.space.embedder = None
    return await ask(world, REFERENCES["file", "id"])


class Broken:
    """A reranker that is away."""

    async def rerank(self, query: str, texts: Any) -> Any:
        raise away()


async def without_reranker(world: World) -> Any:
    world.retrieval._reranker = Broken()
    return await ask(world, REFERENCES["file", "id"])


A_FILE = REFERENCES["file", "id"]
WARNINGS: Mapping[str, Callable[[World], Awaitable[Any]]] = {
    "cannot use file @: @": lambda world: ask(world, {"type": "file", "id": "gone"}),
    "cannot use collection @: it has no completed files": empty_collection,
    "cannot use file @: nothing in it answers the question": lambda world: ask(
        world, A_FILE, "bread", search=SearchOptions(threshold=0.99)
    ),
    "cannot use @ @: this gateway knows references of the types file, collection and text": lambda world: ask(
        world, {"type": "web_search", "id": "w"}
    ),
    "cannot use text: it has no content": lambda world: ask(world, {"type": "text"}),
    "cannot use file @ whole: @ had room in the context": lambda world: ask(
        world, {**A_FILE, "context": "full"}, full_context_limit=9
    ),
    "cannot use the files of this request: no user message has a text": lambda world: ask(
        world, A_FILE, text=""
    ),
    "cannot search by meaning, passages were found by their words alone: @": without_model,
    "cannot rerank the passages: @": without_reranker,
}


def test_every_warning_in_the_page_has_a_trial() -> None:
    assert sentences(PAGE, "warnings") == list(WARNINGS)


@pytest.mark.parametrize("sentence", WARNINGS)
async def test_a_warning_comes_as_the_page_says(world: World, sentence: str) -> None:
    _, warnings = await WARNINGS[sentence](world)
    assert [told for told in warnings if re.fullmatch(pattern(sentence), told)], warnings


PLACES = {"openai": "OpenAI", "messages": "messages", "chat": "runtime", "generate": "runtime"}
STREAMS = {
    "first chunk, with no choices": lambda first: first["sources"] and first["choices"] == [],
    "in the message of message_start": lambda first: (
        first["type"] == "message_start" and first["message"]["sources"]
    ),
    "first line": lambda first: first["sources"],
}


@pytest.mark.parametrize("dialect", citing.REQUESTS)
async def test_sources_stand_where_the_page_says(tmp_path: Path, dialect: str) -> None:
    listed = {name: (whole, stream) for name, whole, stream in rows(PAGE, "dialects")}
    assert set(listed) == set(PLACES.values())
    whole, stream = listed[PLACES[dialect]]
    made = build_world(tmp_path)
    await made.shelve(a_file("f1", name="ssh.txt"), citing.TEXT)
    async with citing.gateway(made) as place:
        answer, warning = await place.ask(dialect, stream=False)
        assert whole == "top level"
        assert answer["sources"]
        assert "'gone'" in warning
        first, *_ = await place.ask(dialect, stream=True)
        assert STREAMS[stream](first)


# The command ----------------------------------------------------------------------------------------------


def test_every_exit_status_of_an_ingestion_has_its_row() -> None:
    listed = {int(number) for numbers, _ in rows(PAGE, "exits") for number in numbers.split(", ")}
    codes = {row.exit_code for row in failures.TABLE.values()} | {failures.OK, failures.PARTIAL}
    assert listed == codes
    assert {"3", "75", "130"} == {
        str(code) for code in (failures.PARTIAL, failures.TRY_LATER, failures.INTERRUPTED)
    }


# The HTTP interface ---------------------------------------------------------------------------------------


def test_every_route_is_in_the_page(tmp_path: Path) -> None:
    served = [(row.method, row.path) for row in DocumentServices(tmp_path).rows()]
    assert [(method, path) for method, path, _ in rows(PAGE, "routes")] == served


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    rules = UploadRules(1000, 2, frozenset({"txt"}))
    async with serving_documents(tmp_path, rules, works=False) as made:
        yield made


async def too_many(site: DocumentsSite) -> Any:
    for _ in range(2):
        await site.upload(b"x")
    return await site.post_form(form(file_part(b"x")))


async def not_permitted(site: DocumentsSite) -> Any:
    await site.services.accounts.permissions.set_defaults({"chat": {"file_upload": False}}, by="test")
    return await site.post_form(form(file_part(b"x")))


async def shared(site: DocumentsSite) -> Any:
    """Have somebody change a collection that may be read by all."""
    everybody = {"principal_type": "user", "principal_id": "*", "permission": "read"}
    made = await site.collection(site.admin, access_grants=[everybody])
    return await site.call("POST", f"/api/v1/knowledge/{made['id']}/update", site.user, {"name": "mine"})


async def being_processed(site: DocumentsSite) -> Any:
    file = await site.upload(b"words")
    return await site.call("POST", f"/api/v1/files/{file['id']}/process", site.user)


async def unfinished(site: DocumentsSite) -> Any:
    file, made = await site.upload(b"words"), await site.collection()
    return await add(site, made["id"], file["id"])


async def duplicate(site: DocumentsSite) -> Any:
    site.services.queue.start()
    made = await site.collection()
    first, second = await site.processed(b"words"), await site.processed(b"words")
    assert (await add(site, made["id"], first["id"]))[0] == 200
    return await add(site, made["id"], second["id"])


async def add(site: DocumentsSite, collection: str, file: str) -> Any:
    return await site.call("POST", f"/api/v1/knowledge/{collection}/file/add", site.user, {"file_id": file})


ERRORS: Mapping[str, Callable[[DocumentsSite], Awaitable[Any]]] = {
    "a file is larger than rag_file_max_size": lambda site: site.post_form(form(file_part(b"x" * 2000))),
    "the account has rag_file_max_count files": too_many,
    "the extension is not in rag_allowed_file_extensions": lambda site: site.post_form(
        form(file_part(b"x", "a.pdf"))
    ),
    "the name of a file is empty, too long or has control characters": lambda site: site.post_form(
        form(file_part(b"x", "a" * 300 + ".txt"))
    ),
    "the form has no file": lambda site: site.post_form(form()),
    "the permission chat.file_upload is missing": not_permitted,
    "a file or collection may be read, but not changed": shared,
    "a file or collection is not there, or not for the caller": lambda site: site.call(
        "GET", "/api/v1/files/unknown", site.user
    ),
    "a file is to change that is being processed": being_processed,
    "a file without passages is to be added": unfinished,
    "a text is to be added that the collection has": duplicate,
}


def test_every_error_in_the_page_has_a_trial() -> None:
    assert [when for *_, when in rows(PAGE, "errors")] == list(ERRORS)


@pytest.mark.parametrize("when", ERRORS)
async def test_an_error_comes_as_the_page_says(site: DocumentsSite, when: str) -> None:
    (said,) = [(status, code) for status, code, each in rows(PAGE, "errors") if each == when]
    status, answer = await ERRORS[when](site)
    code = answer["error"]["code"]
    assert (str(status), code if said[1] != "-" else "-") == said, answer
    assert answer["detail"]


# Names ----------------------------------------------------------------------------------------------------


def permissions() -> set[str]:
    return {f"{group}.{leaf}" for group, leaves in BUILTIN.items() for leaf in leaves}


def test_settings_and_permissions_that_the_page_names_exist() -> None:
    named = set(re.findall(r"(?m)(?:^\.| No | Pq | Ta )Ic ([a-z0-9_.]+)", PAGE))
    assert len(named) > 25
    assert named <= set(definitions()) | permissions()
    assert set(re.findall(r"\b(?:rag|ingest)_[a-z0-9_]+", PAGE)) <= set(definitions())


def test_commands_that_the_page_names_exist() -> None:
    commands = re.findall(r"(?m)^(?:\.Cm|#|.*root) gatewayctl ((?:file |collection )?[a-z-]+)", PAGE)
    assert len(commands) > 10
    for command in commands:
        assert re.search(rf"(?m)^\.Cm {command}\b", COMMANDS), command
    options = set(re.findall(r"(?m)(?:\.Fl -|\\-\\-)([a-z]+)", PAGE)) - {"now"}
    assert len(options) > 4
    for option in options:
        assert re.search(rf"Fl -{option}\b", COMMANDS), option


def test_the_role_of_administrators_is_what_the_page_says() -> None:
    assert "bypass_admin_access_control" in PAGE
    assert person("root", role=Role.ADMIN).is_admin
