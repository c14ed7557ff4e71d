"""Documents when a process, a disk or a database fails, or somebody deletes them meanwhile."""

import os
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import real_postgres
from tests.fakes.daemons.child_processes import adopting, find_child
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.disks import fill, small_disk
from tests.fakes.daemons.ingest_runs import ALL, FILES, KNOWLEDGE, Caller
from tests.fakes.documents.changing_tree import Tree
from tests.fakes.documents.stored_state import Folder, State, read_postgres, read_sqlite
from tests.fakes.storage.postgres import Postgres

SEED = 20_260_302
EMBEDDING, EXTRACTION = "gatewayd.vectors.worker", "gatewayd.extract.child"


@contextmanager
def serving(state: Path, caller: Caller, **settings: str) -> Iterator[Daemon]:
    """Run a daemon for a caller, who becomes its administrator when there is none."""
    with running_daemon(state, **settings) as daemon:
        caller.daemon = daemon
        if not caller.token:
            caller.sign_up()
        yield daemon
        assert "Traceback" not in "".join(daemon.log), "".join(daemon.log)


def upload(caller: Caller, tree: Tree, collection: str = "") -> dict[str, str]:
    """Upload a tree, several files at a time; return the paths by id."""

    def one(path: str) -> tuple[str, str]:
        metadata = {"knowledge_id": collection} if collection else {}
        reply = caller.upload(path.rpartition("/")[2], tree.files[path].content, metadata)
        assert reply.status == 200, (path, reply)
        return reply.json["id"], path

    with ThreadPoolExecutor(4) as pool:
        return dict(pool.map(one, sorted(tree.files)))


def wait_until(ready: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def read(state: Path) -> State:
    """Read the database of a state directory."""
    return read_sqlite(state / "gatewayd.db")


def has(state: Path, rows: str) -> bool:
    """Tell whether the database of a state directory has rows: `FROM table WHERE ...`."""
    with closing(sqlite3.connect(state / "gatewayd.db")) as database:
        return bool(database.execute(f"SELECT EXISTS (SELECT 1 {rows})").fetchone()[0])


def check(state: Path, found: State, wanted: Mapping[str, str]) -> None:
    """See that files ended as they should, that there are no others, and nothing of them anywhere."""
    assert {file.id: file.status for file in found.files.values()} == wanted, found.errors
    assert not found.problems(), found.problems()
    assert not found.unfinished(), found.unfinished()
    assert not Folder(state).problems(found)
    assert not Folder(state).leftovers(found)


def completed(file_ids: Iterable[str]) -> dict[str, str]:
    """Return that all files are completed."""
    return dict.fromkeys(file_ids, "completed")


def test_stop_gives_back_what_it_took(state: Path) -> None:
    caller, tree = Caller(), Tree(SEED, 30, paragraphs=3)
    with adopting() as orphans:
        with serving(state, caller) as daemon:
            told = upload(caller, tree)
            wait_until(lambda: has(state, "FROM files WHERE status = 'completed'"))
            assert daemon.stop(signal.SIGTERM) == 0
        orphans.wait()
    left = read(state)
    assert left.jobs, "nothing was under way"
    assert not left.problems(), left.problems()
    assert set(left.jobs.values()) == {(0, "", 0)}
    with serving(state, caller):
        assert caller.wait(list(told)) == completed(told)
        check(state, read(state), completed(told))


def test_file_deleted_while_it_is_processed(state: Path) -> None:
    caller, tree = Caller(), Tree(SEED, 16, paragraphs=12)
    with serving(state, caller):
        collection = caller.create()
        kept: list[str] = []
        for number, document in enumerate(tree.files.values()):
            metadata = {"knowledge_id": collection}
            file_id = caller.upload("a.txt", document.content, metadata).json["id"]
            wait_until(lambda: has(state, "FROM ingest_jobs WHERE lease_owner != ''"))
            time.sleep(number % 8 * 0.05)
            if number % 4 == 3:
                kept.append(file_id)
                continue
            assert caller.ask("DELETE", f"{FILES}/{file_id}").status == 200
            assert caller.status(file_id) == ""
        assert caller.wait(kept) == completed(kept)
        wait_until(lambda: not has(state, "FROM ingest_jobs"))
        found = caller.search(collection, "heron", k=ALL, hybrid=False)
        assert {each["file_id"] for each in found["metadatas"]} == set(kept)
        check(state, read(state), completed(kept))


def test_collection_deleted_during_an_ingest(state: Path) -> None:
    caller, tree = Caller(), Tree(SEED, 40, paragraphs=2)
    accepted: list[str] = []
    refused: list[int] = []
    with serving(state, caller):
        collection = caller.create()

        def send(path: str) -> None:
            metadata = {"knowledge_id": collection}
            reply = caller.upload(path.rpartition("/")[2], tree.files[path].content, metadata, pause=0.01)
            accepted.append(reply.json["id"]) if reply.status == 200 else refused.append(reply.status)

        with ThreadPoolExecutor(4) as pool:
            sending = [pool.submit(send, path) for path in tree.files]
            wait_until(lambda: len(accepted) >= 10)
            assert caller.ask("DELETE", f"{KNOWLEDGE}/{collection}/delete").status == 200
            for each in sending:
                each.result()
        assert set(refused) == {404}
        assert caller.wait(accepted) == completed(accepted)
        found = read(state)
        check(state, found, completed(accepted))
        assert not found.links
        assert not found.rows["collections"]
        assert caller.ask("GET", f"{KNOWLEDGE}/{collection}").status == 404


def test_same_bytes_at_once(state: Path) -> None:
    caller = Caller()
    document = next(iter(Tree(SEED, 1, paragraphs=9).files.values()))
    places = ["same.html"] * 3 + ["other.html"] * 3
    with serving(state, caller):
        collection = caller.create()
        metadata = {"knowledge_id": collection, "file_hash": document.checksum}
        barrier = threading.Barrier(len(places))

        def send(name: str) -> str:
            barrier.wait()
            reply = caller.upload(name, document.content, metadata)
            assert reply.status == 200, reply
            return str(reply.json["id"])

        with ThreadPoolExecutor(len(places)) as pool:
            told = list(pool.map(send, places))
        caller.wait(told)
        found = read(state)
        held = found.places(collection)
        assert {path: len(files) for path, files in held.items()} == {"same.html": 1, "other.html": 1}
        check(state, found, completed(found.files))
        assert set(found.files) <= set(told)
        texts = caller.search(collection, document.mark, k=50)["documents"]
        assert len(texts) == len(set(texts))
        assert any(document.mark in text for text in texts)


@pytest.mark.parametrize("module", [EMBEDDING, EXTRACTION])
def test_worker_killed_while_it_works(state: Path, module: str) -> None:
    caller, tree = Caller(), Tree(SEED, 12, paragraphs=12)
    with serving(state, caller) as daemon:
        told = upload(caller, tree)
        killed = 0
        for _ in range(2):
            wait_until(lambda: find_child(daemon.process.pid, module) is not None)
            worker = find_child(daemon.process.pid, module)
            with suppress(ProcessLookupError):
                os.kill(worker or 0, signal.SIGKILL)
                killed += 1
            wait_until(lambda gone=worker: find_child(daemon.process.pid, module) != gone)
        assert killed
        assert caller.wait(list(told)) == completed(told)
        check(state, read(state), completed(told))


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """Start a server that a test may do anything to.

    It runs as a user of its own, who must reach its folder: other runs close the one that all tests are in.
    """
    with tempfile.TemporaryDirectory() as folder, real_postgres(Path(folder)) as server:
        yield server


@pytest.mark.slow
def test_database_restarts(state: Path, own_postgres: Postgres) -> None:
    server = own_postgres
    caller, tree = Caller(), Tree(SEED, 16, paragraphs=3)
    address = server.create_database()
    with serving(state, caller, DATABASE_URL=address) as daemon:
        told = upload(caller, tree)
        wait_until(lambda: "completed" in caller.look(list(told)).values())
        server.shut_down()
        reply = caller.upload("late.txt", b"A late document.", {})
        assert reply.status == 503, reply
        server.start()
        wait_until(lambda: daemon.call("GET", "/readyz")[0] == 200)
        assert caller.wait(list(told)) == completed(told)
    # Nobody could tell whether the late one was kept: its bytes go with the next start.
    with serving(state, caller, DATABASE_URL=address):
        check(state, read_postgres(address), completed(told))


def padded(text: str, size: int) -> bytes:
    """Return a page with a little text and many bytes."""
    return f"<p>{text}</p><script>{'x' * size}</script>".encode()


def test_full_disk(state: Path) -> None:
    caller, tree = Caller(), Tree(SEED, 40, paragraphs=3)
    with small_disk(state, "120m"):
        with serving(state, caller) as daemon:
            told = list(upload(caller, Tree(SEED + 1, 3, paragraphs=2)))
            assert caller.wait(told) == completed(told)
            fill(state / "ballast", 2_000_000)
            large = caller.upload("large.txt", b"word " * 800_000, {})
            assert (large.status, large.json["error"]["code"]) == (503, "unavailable"), large
            assert not Folder(state).incoming()
            refused = 0
            for document in tree.files.values():
                reply = caller.upload("a.html", padded(document.mark, 200_000), {})
                assert reply.status in {200, 503}, reply
                refused += reply.status == 503
                told += [reply.json["id"]] if reply.status == 200 else []
            assert refused, "the disk was large enough"
            assert daemon.call("GET", "/livez")[0] == 200
            (state / "ballast").unlink()
            last = caller.upload("a.txt", b"There is room again.", {})
            assert last.status == 200, last
            told.append(last.json["id"])
            assert caller.wait(told) == completed(told)
            check(state, read(state), completed(told))
            assert daemon.stop() == 0
        check(state, read(state), completed(told))
