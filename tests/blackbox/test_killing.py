"""A daemon that is killed at any moment has kept every change that it acknowledged, and brought none back.

Several clients change keys, users, sessions and settings over HTTP while the daemon is killed at a random
moment, again and again on the same state. What was answered with 200 must be there after the next start; the
one change of each client that was cut off may be there or not.
"""

import contextlib
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.daemons.killed_daemon_clients import PASSWORD, Caller, Client, assert_busy, kill_under
from tests.fakes.documents.stored_state import assert_sound, copy_database
from tests.fakes.storage.postgres import Postgres

SEED = 20_260_101
AUTHS = "/api/v1/auths"
CONFIG = f"{AUTHS}/admin/config"


class Keys(Client):
    """Makes and revokes API keys."""

    def __init__(self, caller: Caller, seed: int) -> None:
        super().__init__(caller, seed)
        self.present: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.unsure: set[str] = set()

    def change(self) -> None:
        if self.grows(len(self.present)):
            made = self.caller.call("POST", f"{AUTHS}/api_keys", {"name": f"k{next(self.numbers)}"})
            self.present[made["id"]] = made["api_key"]
            return
        chosen = self.random.choice(list(self.present))
        self.unsure = {chosen}
        self.caller.call("DELETE", f"{AUTHS}/api_keys/{chosen}")
        self.gone[chosen] = self.present.pop(chosen)
        self.unsure = set()

    def check(self) -> None:
        found = {key["id"] for key in self.caller.call("GET", f"{AUTHS}/api_keys")["keys"]}
        assert self.present.keys() - self.unsure <= found
        assert not self.gone.keys() & found
        for ended in self.unsure - found:
            self.gone[ended] = self.present.pop(ended)
        self.unsure = set()
        for expected, values in ((200, self.present), (401, self.gone)):
            for value in list(values.values())[-5:]:
                assert self.caller.ask("GET", "/api/models", None, value).status == expected


class People(Client):
    """Adds, renames, demotes and removes users."""

    def __init__(self, caller: Caller, seed: int) -> None:
        super().__init__(caller, seed)
        self.present: dict[str, dict[str, str]] = {}
        self.gone: set[str] = set()
        self.pending: tuple[str, dict[str, str] | None] | None = None

    def change(self) -> None:
        number = next(self.numbers)
        if len(self.present) < 2 or self.random.random() < 0.2:
            form = {"name": f"n{number}", "email": f"n{number}@example.org", "password": PASSWORD}
            made = self.caller.call("POST", f"{AUTHS}/add", {**form, "role": "user"})
            self.present[made["id"]] = {"name": form["name"], "role": "user"}
            return
        chosen = self.random.choice(list(self.present))
        if self.random.random() < 0.2:
            self.pending = (chosen, None)
            self.caller.call("DELETE", f"/api/v1/users/{chosen}")
        else:
            fields = {"name": f"renamed {number}", "role": self.random.choice(["user", "admin", "pending"])}
            self.pending = (chosen, fields)
            self.caller.call("POST", f"/api/v1/users/{chosen}/update", fields)
        self.settle()

    def settle(self) -> None:
        """Note that the pending change happened."""
        assert self.pending is not None
        chosen, fields = self.pending
        self.pending = None
        if fields is None:
            del self.present[chosen]
            self.gone.add(chosen)
        else:
            self.present[chosen] = fields

    def check(self) -> None:
        users = self.caller.call("GET", "/api/v1/users/all")["users"]
        found = {user["id"]: {"name": user["name"], "role": user["role"]} for user in users}
        if self.pending is not None and found.get(self.pending[0]) == self.pending[1]:
            self.settle()
        self.pending = None
        assert {name: found.get(name) for name in self.present} == self.present
        assert not self.gone & found.keys()


class Sessions(Client):
    """Signs out; the token must stay useless, and the others good and listed."""

    def __init__(self, caller: Caller, seed: int) -> None:
        super().__init__(caller, seed)
        self.open: list[str] = []
        self.ended: list[str] = []

    def change(self) -> None:
        if not self.open:
            form = {"name": "s", "email": f"s{self.random.random()}@example.org", "password": PASSWORD}
            self.open.append(self.caller.call("POST", f"{AUTHS}/add", {**form, "role": "user"})["token"])
            return
        token = self.open.pop()
        self.caller.call("POST", f"{AUTHS}/signout", {}, token)
        self.ended.append(token)

    def check(self) -> None:
        for token in self.ended[-10:]:
            assert self.caller.ask("GET", f"{AUTHS}/", None, token).status == 401
        for token in self.open:
            listed = self.caller.call("GET", f"{AUTHS}/sessions", None, token)
            assert [session["current"] for session in listed] == [True]


class Settings(Client):
    """Changes two settings together; never one without the other."""

    def __init__(self, caller: Caller, seed: int) -> None:
        super().__init__(caller, seed)
        self.now: dict[str, Any] = {}
        self.next: dict[str, Any] = {}

    def change(self) -> None:
        if not self.now:
            found = self.caller.call("GET", CONFIG)
            self.now = {name: found[name] for name in ("RESPONSE_WATERMARK", "ENABLE_SIGNUP")}
        number = next(self.numbers)
        self.next = {"RESPONSE_WATERMARK": f"w{number}", "ENABLE_SIGNUP": number % 2 == 0}
        self.caller.call("POST", CONFIG, self.next)
        self.now = self.next

    def check(self) -> None:
        found = self.caller.call("GET", CONFIG)
        seen = {name: found[name] for name in self.next}
        assert seen in (self.now, self.next), (seen, self.now, self.next)
        self.now = self.next = seen


class Providers(Client):
    """Replaces the providers of the page, two at once; never one without the other."""

    def __init__(self, caller: Caller, seed: int) -> None:
        super().__init__(caller, seed)
        self.now: list[str] = []
        self.next: list[str] = []

    def change(self) -> None:
        number = next(self.numbers)
        self.next = [f"http://127.0.0.1:9/{number}/{place}" for place in range(2)]
        body = {"OPENAI_API_BASE_URLS": self.next, "OPENAI_API_KEYS": ["k", "k"]}
        names = {str(place): {"name": f"p{place}"} for place in range(2)}
        self.caller.call("POST", "/openai/config/update", {**body, "OPENAI_API_CONFIGS": names})
        self.now = self.next

    def check(self) -> None:
        found = self.caller.call("GET", "/openai/config")
        seen = found["OPENAI_API_BASE_URLS"]
        assert seen in (self.now, self.next), (seen, self.now, self.next)
        assert found["OPENAI_API_KEYS"] == ["********"] * len(seen)
        self.now = self.next = seen


class Lives:
    """The lives of one daemon: start, check, change, die."""

    def __init__(self, state: Path, seed: int, settings: dict[str, str]) -> None:
        self.state = state
        self.random = random.Random(seed)
        self.caller = Caller()
        kinds = (Keys, People, Sessions, Settings, Providers)
        self.clients = [kind(self.caller, seed + place) for place, kind in enumerate(kinds)]
        self.settings = {"ENABLE_API_KEYS": "true", "ENABLE_SIGNUP": "true", **settings}

    @contextlib.contextmanager
    def started(self) -> Iterator[Daemon]:
        with running_daemon(self.state, **self.settings) as daemon:
            self.caller.daemon = daemon
            yield daemon

    def begin(self) -> None:
        """Make the administrator, with the right to have keys."""
        with self.started():
            user_id = self.caller.sign_up()
            group = {"name": "g", "description": "", "permissions": {"features": {"api_keys": True}}}
            made = self.caller.call("POST", "/api/v1/groups/create", group)["id"]
            self.caller.call("POST", f"/api/v1/groups/id/{made}/users/add", {"user_ids": [user_id]})

    def live(self) -> None:
        """One life: everything acknowledged is there, then changes until the end comes."""
        with self.started() as daemon:
            self.check()
            kill_under(self.clients, daemon, self.random)

    def die_young(self) -> None:
        """One life that ends while it starts."""
        with running_daemon(self.state, ready=False, **self.settings) as daemon:
            time.sleep(self.random.uniform(0.0, 1.5))
            daemon.stop(signal.SIGKILL)

    def check(self) -> None:
        for client in self.clients:
            client.check()

    def end(self) -> None:
        """The last life, which ends well."""
        with self.started() as daemon:
            self.check()
            assert daemon.stop() == 0
        assert_busy(self.clients)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_fifty_deaths_on_sqlite(tmp_path: Path) -> None:
    live_on_sqlite(tmp_path, 50)


@pytest.mark.slow
def test_six_deaths_on_sqlite(tmp_path: Path) -> None:
    live_on_sqlite(tmp_path, 6)


def live_on_sqlite(tmp_path: Path, deaths: int) -> None:
    copy = tmp_path / "copy"
    lives = Lives(tmp_path / "s", SEED, {})
    lives.begin()
    for number in range(deaths):
        lives.live()
        copy.mkdir()
        assert_sound(copy_database(lives.state, copy))
        shutil.rmtree(copy)
        if number % 10 == 0:
            lives.die_young()
    lives.end()


@pytest.mark.slow
def test_five_deaths_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    lives = Lives(tmp_path / "s", SEED + 1, {"DATABASE_URL": postgres.migrated_database()})
    lives.begin()
    for number in range(5):
        lives.live()
        if number == 2:
            lives.die_young()
    lives.end()
