"""A daemon with an administrator, and `gatewayctl ingest` over folders of documents."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.documents.stored_state import State, read_postgres, read_sqlite

SECONDS = 300.0
COLLECTION = "corpus"


@dataclass(frozen=True)
class Run:
    """What one `gatewayctl ingest` said: its exit status, its object and its complaints."""

    status: int
    report: Mapping[str, Any]
    complaints: str

    @property
    def counts(self) -> tuple[int, ...]:
        """How many were added, changed, removed, unchanged, failed and left pending."""
        names = ("added", "changed", "removed", "unchanged", "failed", "pending")
        assert self.report.keys() >= set(names), self
        return tuple(self.report[name] for name in names)

    @property
    def failures(self) -> Mapping[str, str]:
        """The sentence about each file that failed."""
        return {row["path"]: row["error"] for row in self.report["failures"]}


@dataclass(frozen=True)
class Hit:
    """A passage that was found; `page` counts from 1."""

    text: str
    name: str
    file_id: str
    page: int | None


@dataclass(frozen=True)
class Stand:
    """A running daemon, the token of its administrator, and its database on PostgreSQL if not on SQLite."""

    daemon: Daemon
    token: str
    database: str = ""

    def start_ingest(self, folder: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start an ingest of a folder into the collection."""
        command = [sys.executable, "-m", "gatewayctl", "--socket", str(self.daemon.socket)]
        return subprocess.Popen(
            [*command, "ingest", str(folder), "--collection", COLLECTION, "--output", "json", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NO_COLOR": "1"},
        )

    def ingest(self, folder: Path, *arguments: str) -> Run:
        """Ingest a folder and wait for the end."""
        return ended(self.start_ingest(folder, *arguments))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request as the administrator, which must succeed."""
        status, answer = self.daemon.call(method, path, body, {"Authorization": f"Bearer {self.token}"})
        assert status == 200, answer
        return answer

    def collection_id(self) -> str:
        """Return the id of the collection."""
        listed = self.call("GET", "/api/v1/knowledge/")["items"]
        (found,) = [row["id"] for row in listed if row["name"] == COLLECTION]
        assert isinstance(found, str)
        return found

    def ask(self, question: str, k: int = 5) -> Sequence[Hit]:
        """Return the first passages for a question, best first."""
        body = {"collection_names": [self.collection_id()], "query": question, "k": k}
        answer = self.call("POST", "/api/v1/retrieval/query/collection", body)
        assert not answer.get("warnings"), answer["warnings"]
        assert answer["distances"][0] == sorted(answer["distances"][0], reverse=True)
        found = zip(answer["documents"][0], answer["metadatas"][0], strict=True)
        return [_hit(text, metadata) for text, metadata in found]

    def state(self) -> State:
        """Return what the database holds."""
        if self.database:
            return read_postgres(self.database)
        return read_sqlite(self.daemon.state / "gatewayd.db")

    def assert_whole(self) -> State:
        """Check that everything in the database fits together and nothing is left to do; return it."""
        state = self.state()
        assert state.problems() == []
        assert state.unfinished() == []
        return state

    def held(self) -> Mapping[str, str]:
        """Return the id of the one file at each path of the collection."""
        places = self.state().places(self.collection_id())
        assert all(len(files) == 1 for files in places.values()), places
        return {path: files[0].id for path, files in places.items()}


@dataclass(frozen=True)
class Ingested:
    """Documents of a folder that were ingested once."""

    stand: Stand
    folder: Path
    run: Run


def _hit(text: str, metadata: Mapping[str, Any]) -> Hit:
    label = metadata.get("page_label")
    if label is not None:
        assert metadata["page"] == int(label) - 1
    return Hit(text, metadata["name"], metadata["file_id"], None if label is None else int(label))


def ended(process: subprocess.Popen[str]) -> Run:
    """Wait for an ingest and return what it said."""
    with process:
        out, err = process.communicate(timeout=SECONDS)
    return Run(process.returncode, json.loads(out) if out else {}, err)


@contextlib.contextmanager
def opened_stand(state: Path, database: str = "", **settings: str) -> Iterator[Stand]:
    """Run a daemon and make its administrator."""
    named = {"DATABASE_URL": database, **settings} if database else settings
    with running_daemon(state, **named) as daemon:
        form = {"name": "Root", "email": "root@example.org", "password": "correct horse"}
        session = daemon.call("POST", "/api/v1/auths/signup", form)[1]
        yield Stand(daemon, session["token"], database)
        assert daemon.stop() == 0
        assert "Traceback" not in "".join(daemon.log), "".join(daemon.log)


def squeezed(text: str) -> str:
    """Return a text with one blank for each run of white space."""
    return " ".join(text.split())
