"""Clients of a daemon that is killed at any moment: each checks afterwards what was acknowledged."""

import contextlib
import http.client
import itertools
import json
import random
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakes.daemons.daemon import Daemon
from tests.fakes.http.raw_http import Reply, send

PASSWORD = "correct horse"
EMAIL = "root@example.org"


class CutError(Exception):
    """The daemon went away before it answered."""


@dataclass
class Caller:
    """Calls a daemon as one user, whose session or key outlives the daemon."""

    daemon: Daemon | None = None
    token: str = ""

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        """Return the answer of a request that must succeed; CutError when none came."""
        reply = self.ask(method, path, body, token)
        assert reply.status == 200, (method, path, reply.status, reply.body)
        return reply.json

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Return the reply, CutError when none came; with headers the body goes out as it is."""
        assert self.daemon is not None
        given = {"Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        data = None if body is None else body if headers else json.dumps(body).encode()
        try:
            return send(self.daemon.base_url, method, path, data, given, seconds=60)
        except (OSError, http.client.HTTPException) as error:
            raise CutError from error

    def sign_up(self) -> str:
        """Become the administrator; return the id of the account."""
        fields = {"name": "Root", "email": EMAIL, "password": PASSWORD}
        made = self.call("POST", "/api/v1/auths/signup", fields, "")
        self.token = made["token"]
        return str(made["id"])


class Client(ABC):
    """One client with things of its own: changes them until it is cut off, and checks them afterwards."""

    def __init__(self, caller: Caller, seed: int) -> None:
        self.caller = caller
        self.random = random.Random(seed)
        self.numbers = itertools.count()
        self.done = 0

    @abstractmethod
    def change(self) -> None:
        """Make one change and note it once it is acknowledged."""

    @abstractmethod
    def check(self) -> None:
        """Compare what is there with what was acknowledged, and learn how the cut change ended."""

    def run(self) -> None:
        """Change until the daemon is gone."""
        with contextlib.suppress(CutError):
            while True:
                self.change()
                self.done += 1

    def grows(self, known: int) -> bool:
        """Choose between making and removing, around twenty things."""
        return known < 3 or self.random.random() > known / 40


def kill_under(clients: Sequence[Client], daemon: Daemon, chance: random.Random) -> None:
    """Let every client change one or two things, or none, and kill the daemon under them a moment later."""
    wanted = [client.done + chance.randrange(3) for client in clients]
    deadline = time.monotonic() + 60
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    while any(client.done < done for client, done in zip(clients, wanted, strict=True)):
        assert time.monotonic() < deadline, [client.done for client in clients]
        time.sleep(0.005)
    time.sleep(chance.uniform(0.02, 0.3))
    assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    for thread in threads:
        thread.join()
    assert "Traceback" not in "".join(daemon.log)


def assert_busy(clients: Sequence[Client]) -> None:
    """Every client made changes, so that its checks looked at something."""
    assert all(client.done >= 5 for client in clients), [client.done for client in clients]
