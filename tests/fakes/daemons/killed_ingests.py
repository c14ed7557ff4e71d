"""The lives of a daemon that is killed while a tree of documents is ingested, changed, and ingested again.

What it left is looked at after each death, and compared with the tree whenever an ingest came to its end; no
process of a dead daemon may live on.
"""

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from gatewayctl.client import ControlClient
from gatewayctl.failures import CommandError
from gatewayctl.transport import Transport
from gatewayctl.wire import routes
from gatewayctl.wire.collections import CheckReport
from tests.fakes.daemons.child_processes import Orphans, children_of
from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.ingest_runs import ALL, Acknowledged, Caller, CtlIngest, HttpIngest, Ingest
from tests.fakes.daemons.killed_daemon_clients import CutError
from tests.fakes.documents.changing_tree import Tree
from tests.fakes.documents.stored_state import (
    Folder,
    State,
    assert_sound,
    copy_database,
    read_postgres,
    read_sqlite,
)

ASKED = 12


@dataclass
class Figures:
    """What happened."""

    kills: int = 0
    young: int = 0
    passes: int = 0
    uploaded: int = 0
    orphans: int = 0
    searches: int = 0
    found: Counter[str] = field(default_factory=Counter)


class Lives:
    """The lives of one daemon: start, look, ingest, die."""

    def __init__(self, state: Path, seed: int, tree: Tree, database: str = "") -> None:
        self.state = state
        self.random = random.Random(seed)
        self.caller = Caller()
        self.told = Acknowledged()
        self.tree = tree
        self.figures = Figures()
        self.folder = Folder(state)
        self.database = database
        self.settings = {"DATABASE_URL": database} if database else {}
        self.collection = ""
        self.ingest: Ingest
        self.ended = threading.Event()
        self.chance = random.Random(seed + 1)

    def begin(self, orphans: Orphans, *, with_ctl: bool = False) -> None:
        """Make the administrator and the collection."""
        self.orphans = orphans
        with running_daemon(self.state, **self.settings) as daemon:
            self.caller.daemon = daemon
            self.caller.sign_up()
            self.collection = self.caller.create()
            assert daemon.stop() == 0
        self.use_ctl() if with_ctl else self.use_http()

    def use_http(self) -> None:
        """Ingest over HTTP from now on."""
        self.ingest = HttpIngest(self.caller, self.collection, self.told, self.random.randrange(10**9))

    def use_ctl(self) -> None:
        """Ingest with gatewayctl from now on."""
        self.ingest = CtlIngest(self.caller, self.collection, self.told, self.state.parent / "tree")

    def live(self, seconds: float | None, module: str = "gatewayd") -> None:
        """One life: ingest until the end comes, or, without seconds, until one ingest is complete."""
        with running_daemon(self.state, module=module, **self.settings) as daemon:
            self.caller.daemon = daemon
            self.ended.clear()
            with ThreadPoolExecutor(2) as pool:
                works = [pool.submit(self.work, seconds is None), pool.submit(self.ask)]
                try:
                    if seconds is not None:
                        self.wait(works, seconds)
                        self.kill(daemon)
                    else:
                        works[0].result()
                finally:
                    self.ended.set()
                    if any(work.exception(300) for work in works):
                        sys.stderr.write("".join(daemon.log))
                for work in works:
                    work.result()
            if seconds is None:
                assert daemon.stop() == 0
            assert "Traceback" not in "".join(daemon.log), "".join(daemon.log)
        self.look()

    def die_young(self, seconds: float) -> None:
        """One life that ends while it starts."""
        with running_daemon(self.state, ready=False, **self.settings) as daemon:
            time.sleep(seconds)
            self.kill(daemon)
            self.figures.young += 1
        self.look()

    def wait(self, works: Sequence[Future[None]], seconds: float) -> None:
        """Let time pass, but not when something failed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not any(work.done() for work in works):
            time.sleep(min(0.01, max(0.0, deadline - time.monotonic())))

    def kill(self, daemon: Daemon) -> None:
        """Kill the daemon and nothing else."""
        children = children_of(daemon.process.pid)
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        self.figures.kills += 1
        self.figures.orphans += len(children)

    def work(self, once: bool) -> None:
        """Ingest, check, change the tree, and begin anew."""
        with contextlib.suppress(CutError):
            while not self.ended.is_set():
                self.ingest.run(self.tree)
                self.figures.uploaded = len(self.told.files)
                self.check_quiet()
                self.figures.passes += 1
                if once:
                    return
                self.tree.change()

    def ask(self) -> None:
        """Search all the time: the index is loaded then, and learns of every change."""
        while not self.ended.is_set():
            mark = self.chance.choice([document.mark for document in list(self.tree.files.values())])
            with contextlib.suppress(CutError):
                self.caller.search(self.collection, mark, k=5)
                self.figures.searches += 1
            self.ended.wait(0.2)

    def look(self) -> None:
        """See that what a daemon left is whole, and that all of its processes have ended."""
        self.orphans.wait()
        state = self.read_copy()
        assert not state.problems(), state.problems()
        assert not self.folder.problems(state), self.folder.problems(state)
        self.check_told(state)
        self.figures.found.update(self.moments(state))

    def read(self) -> State:
        """Read the database while the daemon has it."""
        return read_postgres(self.database) if self.database else read_sqlite(self.state / "gatewayd.db")

    def read_copy(self) -> State:
        """Read the database of a dead daemon; the next one does its own recovery."""
        if self.database:
            return self.read()
        folder = self.state.parent / "copy"
        folder.mkdir()
        copy = copy_database(self.state, folder)
        assert_sound(copy)
        found = read_sqlite(copy)
        shutil.rmtree(folder)
        return found

    def check_told(self, state: State) -> None:
        """Each file that was acknowledged is there, unless it was removed or another took its place."""
        order = {file_id: number for number, file_id in enumerate(self.told.files)}
        places = state.places(self.collection)
        for file_id, path in self.told.files.items():
            if file_id in state.files or file_id in self.told.removed:
                continue
            later = [file for file in places.get(path, ()) if order.get(file.id, len(order)) > order[file_id]]
            now = self.tree.files.get(path)
            end = "failed" if now and now.is_bad else "completed"
            assert now is None or any(file.status == end for file in later), (path, file_id, later)

    def check_quiet(self) -> None:
        """Everything is processed: the collection is the tree, and nothing else is anywhere."""
        again = self.read()
        self.check_whole(again)
        self.check_found(again)
        work = self.ingest.run(self.tree)
        assert work.is_nothing, work
        assert self.read().fingerprint == again.fingerprint, "an ingest that does nothing changed something"

    def check_whole(self, state: State) -> None:
        """Compare what is kept with the tree."""
        assert not state.problems(), state.problems()
        assert not state.unfinished(), state.unfinished()
        assert not self.folder.problems(state), self.folder.problems(state)
        assert not self.folder.leftovers(state), self.folder.leftovers(state)
        held = {
            path: [(file.checksum, file.status) for file in files]
            for path, files in state.places(self.collection).items()
        }
        wanted = {
            path: [(document.checksum, "failed" if document.is_bad else "completed")]
            for path, document in self.tree.files.items()
        }
        paths = sorted(held.keys() | wanted.keys())
        wrong = [(path, held.get(path), wanted.get(path)) for path in paths]
        wrong = [each for each in wrong if each[1] != each[2]]
        assert not wrong, wrong
        assert len(state.files) == len(self.tree.files), (len(state.files), len(self.tree.files))

    def check_found(self, state: State) -> None:
        """Searches find every passage, by meaning and by words, and no others."""
        report = self.check_indexes()
        assert not report.problems, report.problems
        found = self.caller.search(self.collection, "heron", k=ALL, hybrid=False)
        kept = [passage for passages in state.passages.values() for passage in passages]
        differing = set(found["ids"]) ^ {str(passage.id) for passage in kept}
        assert not differing, differing
        assert len(found["ids"]) == len(kept), (len(found["ids"]), len(kept))
        good = [document for document in self.tree.files.values() if not document.is_bad]
        for document in self.random.sample(good, min(ASKED, len(good))):
            texts = self.caller.search(self.collection, document.mark, k=5)["documents"]
            assert any(document.mark in text for text in texts), (document.mark, texts)

    def check_indexes(self) -> CheckReport:
        """Have the daemon compare its indexes with the database."""
        assert self.caller.daemon is not None
        try:
            return ControlClient(Transport(self.state / "control.sock")).call(
                routes.CHECK_COLLECTION, self.collection
            )
        except CommandError as error:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.caller.daemon.process.wait(5)
                raise CutError from error
            raise

    def moments(self, state: State) -> Iterator[str]:
        """Tell in which moments of an ingest the daemon died."""
        leased = [file_id for file_id, (_, owner, _) in state.jobs.items() if owner]
        staged = {file_id for file_id, is_staged in state.rows["texts"] if is_staged}
        yield from ["receiving"] if self.folder.incoming() else []
        yield from ["before a commit"] if self.folder.leftovers(state) else []
        yield from ["waiting"] if len(state.jobs) > len(leased) else []
        yield from ["extracting"] if set(leased) - staged else []
        yield from ["embedding"] if staged else []
        yield from (["replacing"] if any(len(f) > 1 for f in state.places(self.collection).values()) else [])
        yield from ["writing a checkpoint"] if list(self.state.glob("vectors/*.part")) else []
        yield from ["checkpoints"] if list(self.state.glob("vectors/*.json")) else []
