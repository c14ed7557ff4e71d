"""A gateway that is killed at any moment has kept every provisioning write that it acknowledged."""

import contextlib
import http.client
import itertools
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.clients.scim.gateway import ask, opened_gateway
from tests.clients.scim.story import GROUP, USER, op, patch
from tests.fakes.http.raw_http import Reply
from tests.fakes.storage.postgres import Postgres

SEED = 20_261_121


class CutError(Exception):
    """The daemon went away before it answered."""


class Provider:
    """Manages users and a group of its own until it is cut off; knows what was acknowledged.

    `unsure` is the one change that was sent and not answered: a path and what it would leave behind.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.random = random.Random(SEED + number)
        self.counter = itertools.count()
        self.url = ""
        self.users: dict[str, dict[str, Any]] = {}
        self.members: set[str] = set()
        self.group = ""
        self.unsure: tuple[str, dict[str, Any]] | None = None
        self.unsure_members: set[str] = set()
        self.done = 0

    def send(self, method: str, path: str, body: Any, *statuses: int) -> Reply:
        """Return an answer that must have one of the statuses; CutError when none came."""
        try:
            reply = ask(self.url, method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise CutError from error
        assert reply.status in statuses, (method, path, reply)
        return reply

    def run(self) -> None:
        """Change until the daemon is gone."""
        with contextlib.suppress(CutError):
            while True:
                self.change()
                self.done += 1

    def change(self) -> None:
        """Make one change and note it once it is acknowledged."""
        if not self.group:
            name = f"killed {self.number} {next(self.counter)}"
            self.group = self.send("POST", "/Groups", {"schemas": [GROUP], "displayName": name}, 201).json[
                "id"
            ]
        elif len(self.users) < 3 or self.random.random() < 0.2:
            self.create()
        else:
            self.random.choice((self.rename, self.deactivate, self.join, self.leave))(
                self.random.choice(list(self.users))
            )

    def create(self) -> None:
        name = f"k{self.number}-{next(self.counter)}@example.org"
        body = {"schemas": [USER], "userName": name, "displayName": name, "externalId": name, "active": True}
        made = self.send("POST", "/Users", body, 201).json
        self.users[made["id"]] = {"userName": name, "displayName": name, "externalId": name, "active": True}

    def rename(self, user_id: str) -> None:
        name = f"renamed {next(self.counter)}"
        self.unsure = (user_id, {**self.users[user_id], "displayName": name, "active": True})
        body = patch(op("replace", value={"displayName": name, "active": True}))
        self.send("PATCH", f"/Users/{user_id}", body, 200)
        self.settle()

    def deactivate(self, user_id: str) -> None:
        self.unsure = (user_id, {**self.users[user_id], "active": False})
        self.send("DELETE", f"/Users/{user_id}", None, 204)
        self.settle()

    def join(self, user_id: str) -> None:
        self.unsure_members = {user_id}
        self.send(
            "PATCH", f"/Groups/{self.group}", patch(op("add", "members", value=[{"value": user_id}])), 204
        )
        self.members.add(user_id)
        self.unsure_members = set()

    def leave(self, user_id: str) -> None:
        self.unsure_members = {user_id}
        body = patch(op("Remove", "members", value=[{"value": user_id}]))
        self.send("PATCH", f"/Groups/{self.group}", body, 204)
        self.members.discard(user_id)
        self.unsure_members = set()

    def settle(self) -> None:
        """Note that the unsure change happened."""
        assert self.unsure is not None
        user_id, wanted = self.unsure
        self.users[user_id] = wanted
        self.unsure = None

    def check(self) -> None:
        """Compare what is there with what was acknowledged, and learn how the cut change ended."""
        for user_id in list(self.users):
            shown = self.send("GET", f"/Users/{user_id}", None, 200).json
            found = {name: shown.get(name) for name in ("userName", "displayName", "externalId", "active")}
            if self.unsure == (user_id, found):
                self.settle()
            assert found == self.users[user_id]
        self.unsure = None
        if self.group:
            shown = self.send("GET", f"/Groups/{self.group}", None, 200).json
            present = {member["value"] for member in shown.get("members", [])}
            assert present ^ self.members <= self.unsure_members
            self.members, self.unsure_members = present, set()


def live(state: Path, providers: list[Provider], moment: random.Random, settings: dict[str, str]) -> None:
    """One life: everything acknowledged is there, then changes until the end comes."""
    with opened_gateway(state, **settings) as gateway:
        for provider in providers:
            provider.url = gateway.url
            provider.check()
        threads = [threading.Thread(target=provider.run) for provider in providers]
        for thread in threads:
            thread.start()
        done = [provider.done for provider in providers]
        ends = time.monotonic() + 20
        time.sleep(moment.uniform(0.05, 0.6))
        # A busy machine has done little by then.
        while any(provider.done < before + 2 for provider, before in zip(providers, done, strict=True)):
            assert time.monotonic() < ends, [provider.done for provider in providers]
            time.sleep(0.01)
        assert gateway.daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        for thread in threads:
            thread.join()


def die(state: Path, times: int, settings: dict[str, str]) -> None:
    """Live and die some times; the last life ends well."""
    providers = [Provider(number) for number in range(4)]
    moment = random.Random(SEED)
    for _ in range(times):
        live(state, providers, moment, settings)
    with opened_gateway(state, **settings) as gateway:
        for provider in providers:
            provider.url = gateway.url
            provider.check()
        assert gateway.daemon.stop() == 0
    assert all(provider.done >= 10 for provider in providers), [provider.done for provider in providers]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_six_deaths_on_sqlite(tmp_path: Path) -> None:
    die(tmp_path / "s", 6, {})


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_five_deaths_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    die(tmp_path / "s", 5, {"DATABASE_URL": postgres.migrated_database()})
