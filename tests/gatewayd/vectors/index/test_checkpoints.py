"""Graphs on disk, whole or refused."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import orjson
import pytest

from gatewayd.ingest.records import EmbeddingSpace
from gatewayd.vectors.index import checkpoints as module
from gatewayd.vectors.index.checkpoints import CheckpointKey, GraphCheckpoints, scope_stem
from gatewayd.vectors.index.hnsw_index import HnswIndex
from tests.fakes.documents.index_conformance import SPACE, collection, random_rows, single

KEY = CheckpointKey(SPACE, collection("c/../1"))
Damage = Callable[[Path], object]


def graph(count: int, first: int = 1) -> HnswIndex:
    made = HnswIndex(8, 100)
    made.add(range(first, first + count), random_rows(count, 1))
    return made


@pytest.fixture
def kept(tmp_path: Path) -> GraphCheckpoints:
    made = GraphCheckpoints(tmp_path / "vectors")
    assert made.open() == []
    return made


def write(kept: GraphCheckpoints, count: int, key: CheckpointKey = KEY) -> None:
    kept.write(key, graph(count).snapshot(), lambda: True)


def names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "vectors").iterdir())


def read_count(kept: GraphCheckpoints, key: CheckpointKey = KEY) -> int | None:
    found = kept.read(key)
    return None if found is None else len(found)


def test_what_was_written_is_read(kept: GraphCheckpoints, tmp_path: Path) -> None:
    assert kept.read(KEY) is None
    write(kept, 30)
    found = kept.read(KEY)
    assert found is not None
    assert np.array_equal(found.rows([1, 30]), random_rows(30, 1)[[0, 29]])
    assert (tmp_path / "vectors").stat().st_mode & 0o777 == 0o700
    # Nothing that anybody chose is in a name.
    assert all(module.FILE_NAME.fullmatch(name) for name in names(tmp_path))


def test_two_generations_are_kept(kept: GraphCheckpoints, tmp_path: Path) -> None:
    for count in (10, 20, 30, 40):
        write(kept, count)
    assert [name[-13:] for name in names(tmp_path)] == [
        "00000003.hnsw",
        "00000003.json",
        "00000004.hnsw",
        "00000004.json",
    ]
    assert read_count(kept) == 40


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def extend(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in range(200, 240):
        content[place] ^= 0x10
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, extend, flip, empty, Path.unlink])
@pytest.mark.parametrize("ending", ["hnsw", "json"])
def test_a_damaged_one_is_never_used(
    kept: GraphCheckpoints, tmp_path: Path, damage: Damage, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    write(kept, 10)
    write(kept, 20)
    newest = next((tmp_path / "vectors").glob(f"*2.{ending}"))
    damage(newest)
    assert read_count(kept) == 10
    if newest.suffix == ".hnsw" or damage is not Path.unlink:
        assert "cannot use a checkpoint" in caplog.text
        assert [name for name in names(tmp_path) if "00000002" in name] == []
    damage(next((tmp_path / "vectors").glob(f"*1.{ending}")))
    assert read_count(kept) is None
    write(kept, 30)
    assert read_count(kept) == 30


@pytest.mark.parametrize("field", ["count", "dimension", "space", "scope", "kind", "version"])
def test_a_header_of_something_else_is_refused(kept: GraphCheckpoints, tmp_path: Path, field: str) -> None:
    write(kept, 10)
    (path,) = (tmp_path / "vectors").glob("*.json")
    content = orjson.loads(path.read_bytes())["content"]
    content[field] = 9 if isinstance(content[field], int) else "file"
    path.write_bytes(orjson.dumps({"check": module._content_digest(content), "content": content}))
    assert read_count(kept) is None


def test_a_header_that_is_no_header_is_refused(kept: GraphCheckpoints, tmp_path: Path) -> None:
    for text in (b"[]", b"{}", b"null", b'{"content": 3, "check": "x"}', b'{"content": {}, "check": "x"}'):
        write(kept, 10)
        next((tmp_path / "vectors").glob("*.json")).write_bytes(text)
        assert read_count(kept) is None
        assert names(tmp_path) == []


def test_keys_are_apart(kept: GraphCheckpoints) -> None:
    keys = [
        KEY,
        CheckpointKey(EmbeddingSpace("other", 8), KEY.scope),
        CheckpointKey(SPACE, single(KEY.scope.id)),
        CheckpointKey(SPACE, collection("d")),
    ]
    for count, key in enumerate(keys, 1):
        write(kept, count, key)
    assert [read_count(kept, key) for key in keys] == [1, 2, 3, 4]
    kept.remove(scope_stem(KEY.scope))
    assert [read_count(kept, key) for key in keys] == [None, None, 3, 4]
    kept.remove(keys[2].stem)
    assert [read_count(kept, key) for key in keys] == [None, None, None, 4]


def test_opening_sweeps_what_is_unfinished(kept: GraphCheckpoints, tmp_path: Path) -> None:
    folder = tmp_path / "vectors"
    for count in (10, 20):
        write(kept, count)
    write(kept, 5, CheckpointKey(SPACE, collection("d")))
    (folder / f"{KEY.stem}.00000003.hnsw.part").write_bytes(b"half")
    (folder / f"{KEY.stem}.00000003.hnsw").write_bytes(b"a body without a header")
    next(folder.glob(f"{KEY.stem}.00000001.hnsw")).unlink()
    (folder / "somebody.else").write_bytes(b"?")
    again = GraphCheckpoints(folder)
    assert set(again.open()) == {KEY, CheckpointKey(SPACE, collection("d"))}
    left = [f"{KEY.stem}.00000002.hnsw", f"{KEY.stem}.00000002.json", "somebody.else"]
    assert [name for name in names(tmp_path) if name.startswith((KEY.stem, "some"))] == left
    assert read_count(again) == 20


def test_opening_removes_what_is_of_nobody(kept: GraphCheckpoints, tmp_path: Path) -> None:
    write(kept, 10)
    next((tmp_path / "vectors").glob("*.json")).write_bytes(b"{}")
    assert GraphCheckpoints(tmp_path / "vectors").open() == []
    assert names(tmp_path) == []


def test_one_that_nobody_wants_is_not_kept(kept: GraphCheckpoints, tmp_path: Path) -> None:
    write(kept, 10)
    kept.write(KEY, graph(20).snapshot(), lambda: False)
    assert read_count(kept) == 10
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_full_disk_leaves_the_former_one(
    kept: GraphCheckpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    write(kept, 10)
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError("no space left on device")

    monkeypatch.setattr(module.os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write(kept, 20)
    monkeypatch.undo()
    assert not list((tmp_path / "vectors").glob("*.part"))
    assert read_count(kept) in ({10} if at < 3 else {20})


def test_verifying_tells_and_removes(kept: GraphCheckpoints, tmp_path: Path) -> None:
    write(kept, 10)
    write(kept, 20)
    assert kept.verify(KEY) == []
    flip(next((tmp_path / "vectors").glob("*2.hnsw")))
    (sentence,) = kept.verify(KEY)
    assert (
        sentence
        == "a checkpoint was damaged and is removed: the SHA-256 of its content does not match the header"
    )
    assert kept.verify(KEY) == []
    assert read_count(kept) == 10


def test_removing_waits_for_who_writes(kept: GraphCheckpoints, tmp_path: Path) -> None:
    writing, go = threading.Event(), threading.Event()

    def is_wanted() -> bool:
        writing.set()
        go.wait(10)
        return True

    snapshot = graph(10).snapshot()
    writer = threading.Thread(target=kept.write, args=(KEY, snapshot, is_wanted))
    writer.start()
    assert writing.wait(10)
    remover = threading.Thread(target=kept.remove, args=(scope_stem(KEY.scope),))
    remover.start()
    go.set()
    writer.join()
    remover.join()
    assert names(tmp_path) == []
