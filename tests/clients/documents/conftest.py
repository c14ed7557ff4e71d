"""A collection with documents on the gateway that all tests of clients share."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients.scene import Scene

SECONDS = 60.0
FILES = "/api/v1/files/"
KNOWLEDGE = "/api/v1/knowledge"

Collections = Callable[[], str]


@dataclass(frozen=True)
class Script:
    """What a script with `requests` does over and over: a session with the key, and short waits."""

    session: requests.Session
    url: str

    def get(self, path: str, **query: Any) -> Any:
        """Return the JSON of a GET."""
        return self.whole(self.session.get(self.url + path, params=query, timeout=SECONDS))

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        """Return the JSON of a POST."""
        return self.whole(self.session.post(self.url + path, json=body, params=query, timeout=SECONDS))

    def upload(self, path: Path, **query: Any) -> Any:
        """Upload a file as scripts do, and return the record."""
        with path.open("rb") as file:
            reply = self.session.post(
                self.url + FILES,
                headers={"Accept": "application/json"},
                files={"file": file},
                params=query,
                timeout=SECONDS,
            )
        return self.whole(reply)

    def processed(self, file_id: str) -> Any:
        """Ask for the status until it is final, and return it."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            status = self.get(f"{FILES}{file_id}/process/status")
            if status["status"] in {"completed", "failed"}:
                return status
            time.sleep(0.1)
        raise AssertionError(f"file {file_id} was not processed in time")

    @staticmethod
    def whole(reply: requests.Response) -> Any:
        """Return the JSON of a reply that must be 200."""
        assert reply.status_code == 200, reply.text
        return reply.json()


@pytest.fixture(scope="session")
def script(scene: Scene) -> Iterator[Script]:
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {scene.key}"
        yield Script(session, scene.url)


@pytest.fixture(scope="session")
def new_collection(script: Script) -> Collections:
    """Make a collection of another name each time."""
    numbers = itertools.count()

    def make() -> str:
        form = {"name": f"Shelf {next(numbers)}", "description": "Birds"}
        made: str = script.post(f"{KNOWLEDGE}/create", form)["id"]
        return made

    return make


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Make a directory of two documents, one of them in a directory of its own."""
    top = tmp_path / "tree"
    (top / "birds").mkdir(parents=True)
    (top / "birds" / "heron.md").write_text("# Herons\n\nThe blue heron stands in the shallow water.")
    (top / "tar.txt").write_text("tar keeps the dates of files in an archive.")
    return top


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a directory for what a client keeps for itself."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder
