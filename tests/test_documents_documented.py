"""gatewayd-documents(7) is complete and true: its rows are tried, the names that the code knows are in it."""

import ast
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest

from gatewayctl import failures
from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS
from gatewayd.assembly import documents as assembly
from gatewayd.assembly import file_store, indexes
from gatewayd.extract.detect import detect_format
from gatewayd.extract.pool import PoolOptions
from gatewayd.extract.readers import READERS
from gatewayd.extract.records import MB, DocumentFormat, DocumentLimits, DocumentSource
from gatewayd.http import uploads
from gatewayd.http.public.files import routes as files_routes
from gatewayd.http.public.knowledge import replies, retrieval
from gatewayd.http.public.knowledge import routes as knowledge_routes
from gatewayd.http.public.knowledge import sync as knowledge_sync
from gatewayd.ingest import serializers as ingest_serializers
from gatewayd.ingest import upload as ingest_upload
from gatewayd.ingest.queue import QueueOptions
from gatewayd.ingest.records import FileStatus
from gatewayd.ingest.size_classes import CLASS_LIMITS, SizeClass
from gatewayd.ingest.upload import UploadRules
from gatewayd.knowledge import collections, directories, grants, members, paths, sync
from gatewayd.knowledge import retrieval as searching
from gatewayd.pipeline.documents import attachments
from gatewayd.settings import Settings, definitions
from gatewayd.tasks import TaskRegistry
from gatewayd.upstream.services.embedders import OllamaEmbedder, OpenAiEmbedder
from gatewayd.vectors import local
from gatewayd.vectors.index import hnsw_index, recall, scope_index
from gatewayd.vectors.local import LocalEmbedder, LocalKind, LocalOptions
from gatewayd.vectors.models import catalogue
from tests.fakes.daemons import citation_site as citing
from tests.fakes.documents.collections import World, a_file, build_world
from tests.fakes.documents.failure_trials import FAILURES
from tests.fakes.documents.kinds import GOOD
from tests.fakes.documents.readers import reading, refusal
from tests.fakes.documents.reference_trials import ANN, REFERENCES, SSH, WARNINGS, ask
from tests.fakes.documents.request_errors import ERRORS
from tests.fakes.documents.site import DocumentServices, DocumentsSite, serving_documents
from tests.fakes.documents.unreadable import TRIALS
from tests.suite.manual_tables import rows, sentences

TOP = Path(__file__).parents[1]
PAGE = (TOP / "man" / "gatewayd-documents.7").read_text()
COMMANDS = (TOP / "man" / "gatewayctl.1").read_text().replace(r"\-", "-")


# What is kept ---------------------------------------------------------------------------------------------


def test_every_directory_is_in_the_page() -> None:
    assert {name for name, *_ in rows(PAGE, "directories")} == {
        file_store.DOCUMENTS_FOLDER,
        assembly.READERS_FOLDER,
        indexes.INDEX_FOLDER,
        catalogue.MODELS_FOLDER,
    }


def test_every_state_has_a_true_row() -> None:
    said = {state: shown for state, shown, _ in rows(PAGE, "states")}
    assert said == {
        state.value: ingest_serializers.render_status(a_file("f", status=state))["status"]
        for state in FileStatus
    }


# Formats --------------------------------------------------------------------------------------------------


def told_by(folder: Path, kind: DocumentFormat) -> str:
    """Return what tells that a document is of a kind."""
    path = folder / "blob"
    path.write_bytes(GOOD[kind])
    if detect_format(DocumentSource(path, "wrong.bin", "image/png", DocumentLimits())) is not kind:
        assert detect_format(DocumentSource(path, "right.md", None, DocumentLimits())) is kind
        return "name"
    return "anything else" if kind is DocumentFormat.TEXT else "content"


def parts_of(kind: DocumentFormat) -> str:
    """Return which parts a document of a kind has."""
    document = reading(GOOD[kind], "x.md" if kind is DocumentFormat.MARKDOWN else "x")
    if all(part.page is not None for part in document.parts):
        return "pages" if kind is DocumentFormat.PDF else "slides"
    if all(part.label is not None for part in document.parts):
        return "chapters" if kind is DocumentFormat.EPUB else "sheets"
    assert len(document.parts) == 1
    return "-"


def test_every_kind_of_document_has_a_true_row(tmp_path: Path) -> None:
    tried = {(READERS[kind][2], told_by(tmp_path, kind), parts_of(kind)) for kind in GOOD}
    assert set(GOOD) == set(READERS) == set(DocumentFormat) - {DocumentFormat.GZIP}
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
    sources = sorted((TOP / "gatewayd" / "extract").rglob("*.py"))
    reasons = set().union(*(reasons_in(path.read_text()) for path in sources))
    assert len(reasons) > 25
    known = re.compile("|".join(pattern(sentence) for sentence in sentences(PAGE, "reasons")))
    assert [reason for reason in sorted(reasons) if not known.fullmatch(reason)] == []


def test_every_failure_in_the_page_has_a_trial() -> None:
    assert sentences(PAGE, "failures") == list(FAILURES)


@pytest.mark.parametrize("sentence", FAILURES)
async def test_a_file_fails_with_the_sentence_of_the_page(sentence: str, tmp_path: Path) -> None:
    told = await FAILURES[sentence](tmp_path)
    assert re.fullmatch(pattern(sentence), told), told


# Scheduling -----------------------------------------------------------------------------------------------


def test_every_size_class_has_a_true_row() -> None:
    *limited, largest = rows(PAGE, "classes")
    assert [(name, int(size), int(passages)) for name, size, passages in limited] == [
        (limit.size.name.lower(), limit.max_bytes, limit.max_passages) for limit in CLASS_LIMITS
    ]
    assert largest == [SizeClass.LARGE.name.lower(), "any", "any"]
    assert f"A turn is {local.PASSAGE_BATCH_SIZE} passages" in PAGE
    others, spare = QueueOptions().others, PoolOptions(TOP).spare
    assert f"together have {others} more than that" in PAGE
    assert f"up to {spare} more processes" in PAGE


# Limits ---------------------------------------------------------------------------------------------------

LIMITS = {
    "characters of a file's name": ingest_upload.MAX_NAME_CHARACTERS,
    "characters of a path": paths.MAX_PATH_CHARACTERS,
    "parts of a path": paths.MAX_PATH_LEVELS,
    "pages of a PDF": DocumentLimits().pages,
    "entries of an archive": DocumentLimits().entries,
    "MB of an archive's entry": DocumentLimits().entry // MB,
    "MB of an archive": DocumentLimits().expanded // MB,
    "passages of one answer": searching.MAX_K,
    "references in a chat request": attachments.MAX_REFERENCES,
    "collections in a search": retrieval.MAX_NAMES,
    "entries of a tree to compare": sync.MAX_ENTRIES,
    "directories of a collection": directories.MAX_DIRECTORIES,
    "files in the reply for one collection": replies.MAX_FILES_SHOWN,
    "files in the reply to a change of a collection": replies.MAX_FILES_IN_REPLY,
    "rows of an access list": grants.MAX_GRANTS,
    "seconds that file/add waits": int(members.MAX_WAIT_SECONDS),
    "MiB of a request with a tree to compare": knowledge_sync.MAX_MANIFEST_BYTES // 2**20,
    "MiB of a request with files to add": knowledge_routes.MAX_BATCH_BYTES // 2**20,
    "bytes of the form fields of an upload, without the file": uploads.MAX_FIELD_BYTES,
    "files in the result of a search by name": files_routes.MAX_FILES_FOUND,
    "characters of the description of a collection": collections.MAX_DESCRIPTION_CHARACTERS,
}


def test_every_limit_is_in_the_page() -> None:
    assert {label: int(number) for label, number in rows(PAGE, "limits")} == LIMITS
    named = {name for _, name in rows(PAGE, "settings")}
    assert named
    assert named <= set(definitions())
    text = " ".join(PAGE.split())
    assert f"more than {scope_index.IndexRules().threshold} passages gets a graph" in text
    candidates, share = hnsw_index.MIN_EF_SEARCH, hnsw_index.VECTORS_PER_CANDIDATE
    assert f"{candidates} up to {round(candidates * share, -3)} passages, and one for every {share}" in text
    assert f"of {recall.SAMPLE_SIZE} of its vectors are looked for" in text
    assert f"less than {recall.MIN_RECALL * 100:g} of 100 of the ten nearest" in text


# Embedding ------------------------------------------------------------------------------------------------


def engines() -> set[str]:
    (literal_type, *_) = get_args(Settings.model_fields["rag_embedding_engine"].rebuild_annotation())
    return set(get_args(literal_type))


async def test_every_engine_has_a_true_row(tmp_path: Path) -> None:
    listed = {engine: (model, space) for engine, model, space in rows(PAGE, "engines")}
    assert set(listed) == engines()
    for name in catalogue.BUILTINS:
        assert name in listed[""][0]
    tasks = TaskRegistry()
    embedder = LocalEmbedder(LocalOptions(LocalKind.BUILTIN, "minilm", tmp_path), tasks)
    shape = listed[""][1].replace("NAME", "minilm").replace("REVISION", catalogue.MINILM.revision)
    assert (await embedder.space()).name == shape
    await embedder.close()
    await tasks.close()
    remote = {OpenAiEmbedder.kind, OllamaEmbedder.kind}
    other = {kind.value for kind in LocalKind if kind is not LocalKind.BUILTIN}
    for engine in remote | other:
        assert listed[engine][1].startswith(f"{engine}:")


# Chat requests --------------------------------------------------------------------------------------------


@pytest.fixture
async def world(tmp_path: Path) -> World:
    made = build_world(tmp_path)
    await made.shelve(a_file("f1", name="ssh.txt"), SSH, await made.collection(ANN, "manual"))
    return made


def test_every_reference_in_the_page_has_a_trial() -> None:
    assert [(kind, fields) for kind, fields, _ in rows(PAGE, "references")] == list(REFERENCES)


@pytest.mark.parametrize("row", REFERENCES)
async def test_a_reference_gives_its_text(world: World, row: tuple[str, str]) -> None:
    sources, warnings = await ask(world, REFERENCES[row])
    assert [source["document"] for source in sources] == [[SSH]]
    assert warnings == []


def test_every_warning_in_the_page_has_a_trial() -> None:
    assert sentences(PAGE, "warnings") == list(WARNINGS)


@pytest.mark.parametrize("sentence", WARNINGS)
async def test_a_warning_comes_as_the_page_says(world: World, sentence: str) -> None:
    _, warnings = await WARNINGS[sentence](world)
    assert [told for told in warnings if re.fullmatch(pattern(sentence), told)], warnings


PLACES = {"openai": "OpenAI", "messages": "Anthropic", "chat": "Ollama", "generate": "Ollama"}
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
    told = {int(number): what for numbers, what in rows(PAGE, "exits") for number in numbers.split(", ")}
    assert told[failures.PARTIAL].startswith("some files failed")
    assert told[failures.TRY_LATER].startswith("to be tried later")
    assert told[failures.INTERRUPTED].startswith("a signal")


# The HTTP interface ---------------------------------------------------------------------------------------


def test_every_route_is_in_the_page(tmp_path: Path) -> None:
    served = [(row.method, row.path) for row in DocumentServices(tmp_path).rows()]
    listed = [
        (method, f"/api/v1/{noun}{path}")
        for noun in ("files", "knowledge", "retrieval")
        for method, path, _ in rows(PAGE, noun)
    ]
    assert listed == served


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[DocumentsSite]:
    rules = UploadRules(1000, 2, frozenset({"txt"}))
    async with serving_documents(tmp_path, rules, works=False) as made:
        yield made


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
    return {f"{group}.{leaf}" for group, leaves in BUILTIN_PERMISSIONS.items() for leaf in leaves}


def test_settings_and_permissions_that_the_page_names_exist() -> None:
    named = set(re.findall(r"(?m)(?:^\.| No | Pq | Ta )Ic ([a-z0-9_.]+)", PAGE))
    assert len(named) > 25
    assert "bypass_admin_access_control" in named
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
