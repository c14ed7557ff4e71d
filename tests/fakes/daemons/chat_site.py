"""A gateway with stored chats: an administrator, two users, a scripted provider and pipes from files.

The pipes tell what happens in them by files below `folder`, named by the text that they were asked.
"""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.event_listener import SECONDS, Listener
from tests.fakes.http.raw_http import Reply, send
from tests.fakes.providers.background_upstream import Provider, background_upstream

CHATS, TASKS, EVENTS = "/api/v1/chats", "/api/tasks", "/api/v1/events"
AUTHS, USERS = "/api/v1/auths", "/api/v1/users"
COMPLETIONS = "/api/chat/completions"
PASSWORD = "correct horse"
SETTINGS = {
    "ENABLE_API_KEYS": "true",
    "USER_PERMISSIONS_FEATURES_API_KEYS": "true",
    "BYPASS_MODEL_ACCESS_CONTROL": "true",
    "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
}
PROVIDER = """
[[providers]]
name = "hosted"
base_url = "{url}/v1"
prefix = "o."
"""
PIPES = {
    "endless": '''"""
title: Endless
"""
import asyncio
from pathlib import Path


class Pipe:
    async def pipe(self, body):
        """Say three words, then nothing more until somebody ends it."""
        asked = body["messages"][-1]["content"]
        try:
            for word in ("one ", "two ", "three"):
                yield word
            (Path(FOLDER) / (asked + ".begun")).touch()
            await asyncio.Event().wait()
        finally:
            (Path(FOLDER) / (asked + ".ended")).touch()
''',
    "events": '''"""
title: Events
"""


class Pipe:
    async def pipe(self, body, __event_emitter__):
        """Tell as many statuses as it is asked for, and say that they were told."""
        wanted = int(body["messages"][-1]["content"])
        for number in range(wanted):
            await __event_emitter__({"type": "status", "data": {"description": str(number), "done": False}})
        return f"{wanted} told"
''',
    "echo": '''"""
title: Echo
"""
import asyncio


class Pipe:
    async def pipe(self, body, __event_emitter__):
        """Say what it is asked, letter by letter, and tell it as a status."""
        asked = body["messages"][-1]["content"]
        await __event_emitter__({"type": "status", "data": {"description": asked, "done": True}})
        for letter in asked:
            yield letter
            await asyncio.sleep(0)
''',
    "asks": '''"""
title: Asks
"""


class Pipe:
    async def pipe(self, body, __event_call__):
        """Ask the user whether to go on."""
        asked = {"type": "confirmation", "data": {"title": "t", "message": "go on?"}}
        return f"answer: {await __event_call__(asked)!r}"
''',
}


@dataclass
class Person:
    """An account with both of its credentials."""

    id: str
    email: str
    token: str
    key: str = ""


@dataclass(frozen=True)
class Turn:
    """A question and the message that is to be its answer."""

    chat_id: str
    question: str
    answer: str
    text: str


def messages_of(question: str, answer: str, text: str, model: str = "o.m") -> dict[str, Any]:
    """Return the two messages of a turn as clients keep them."""
    asked = {"id": question, "parentId": None, "childrenIds": [answer], "role": "user", "content": text}
    told = {"id": answer, "parentId": question, "childrenIds": [], "role": "assistant", "content": ""}
    return {
        question: {**asked, "timestamp": 1_700_000_000, "models": [model]},
        answer: {**told, "timestamp": 1_700_000_001, "model": model, "modelIdx": 0, "done": False},
    }


@dataclass
class House:
    """A running gateway and its people."""

    daemon: Daemon
    provider: Provider
    folder: Path
    people: dict[str, Person] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def admin(self) -> Person:
        """The first account."""
        return self.people["admin"]

    @property
    def ann(self) -> Person:
        """A user."""
        return self.people["ann"]

    @property
    def bob(self) -> Person:
        """Another user."""
        return self.people["bob"]

    def call(
        self, method: str, path: str, body: Any = None, who: Person | str | None = None
    ) -> tuple[int, Any]:
        """Send a request as somebody, ann unless told otherwise, or with a credential."""
        given = who or self.ann
        credential = given if isinstance(given, str) else given.token
        return self.daemon.call(method, path, body, {"Authorization": f"Bearer {credential}"})

    def ok(self, method: str, path: str, body: Any = None, who: Person | str | None = None) -> Any:
        """Send a request that must succeed."""
        status, answer = self.call(method, path, body, who)
        assert status == 200, (method, path, status, answer)
        return answer

    def sign_up(self) -> None:
        """Make the people."""
        form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
        made = self.daemon.call("POST", f"{AUTHS}/signup", form)[1]
        self.people["admin"] = Person(made["id"], form["email"], made["token"])
        self.add("ann")
        self.add("bob")

    def add(self, name: str = "", role: str = "user") -> Person:
        """Add an account with a key."""
        name = name or f"u{next(self.numbers)}"
        form = {"name": name, "email": f"{name}@example.org", "password": PASSWORD, "role": role}
        made = self.ok("POST", f"{AUTHS}/add", form, self.admin)
        person = Person(made["id"], form["email"], made["token"])
        person.key = self.ok("POST", f"{AUTHS}/api_key", {}, person)["api_key"]
        self.people[name] = person
        return person

    def begin(self, model: str = "o.m", text: str = "", who: Person | None = None, **chat: Any) -> Turn:
        """Make a chat of a question and an empty answer."""
        text = text or f"q{next(self.numbers)}"
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        messages = messages_of(question, answer, text, model)
        history = {"currentId": answer, "messages": messages}
        document = {"title": "A chat", "models": [model], "messages": list(messages.values()), **chat}
        made = self.ok("POST", f"{CHATS}/new", {"chat": {**document, "history": history}}, who)
        return Turn(made["id"], question, answer, text)

    def body(self, turn: Turn, model: str = "o.m", **fields: Any) -> dict[str, Any]:
        """Return a chat request for a turn."""
        asked = {"model": model, "messages": [{"role": "user", "content": turn.text}], "stream": True}
        return {**asked, "chat_id": turn.chat_id, "id": turn.answer, **fields}

    def start(self, turn: Turn, model: str = "o.m", who: Person | None = None, **fields: Any) -> str:
        """Begin an answer that nobody waits for, and return the id of its task."""
        body = self.body(turn, model, session_id=f"api-{uuid.uuid4()}", **fields)
        told = self.ok("POST", COMPLETIONS, body, who)
        assert told["status"] is True
        (task_id,) = told["task_ids"]
        return str(task_id)

    def ask(self, model: str = "o.m", text: str = "", who: Person | None = None) -> tuple[Turn, str]:
        """Make a chat and begin its answer; return the turn and the id of the task."""
        turn = self.begin(model, text, who)
        return turn, self.start(turn, model, who)

    def tasks_of(self, turn: Turn, who: Person | None = None) -> Sequence[str]:
        """Return the ids of what runs for a chat."""
        found: Sequence[str] = self.ok("GET", f"{TASKS}/chat/{turn.chat_id}", None, who)["task_ids"]
        return found

    def message(self, turn: Turn, who: Person | None = None) -> dict[str, Any]:
        """Return the answer as it is stored."""
        record = self.ok("GET", f"{CHATS}/{turn.chat_id}", None, who)
        found: dict[str, Any] = record["chat"]["history"]["messages"][turn.answer]
        return found

    def finished(self, turn: Turn, who: Person | None = None) -> dict[str, Any]:
        """Wait until nothing runs for the chat, and return the answer."""
        wait_until(lambda: not self.tasks_of(turn, who), "the end of the tasks")
        return self.message(turn, who)

    def wait_begun(self, turn: Turn) -> None:
        """Wait until the endless pipe has said what it says to a question."""
        wait_until((self.folder / f"{turn.text}.begun").exists, "the words of the pipe")

    def wait_ended(self, turn: Turn) -> None:
        """Wait until the endless pipe's `finally` has run for a question."""
        wait_until((self.folder / f"{turn.text}.ended").exists, "the end of the pipe")

    def listen(
        self, who: Person | str | None = None, last_id: str | None = None, query: str = ""
    ) -> Listener:
        """Open somebody's event stream."""
        given = who or self.ann
        credential = given if isinstance(given, str) else given.token
        headers = {"Authorization": f"Bearer {credential}"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        return Listener(self.daemon.base_url, headers, EVENTS + query)

    def send(self, method: str, path: str, body: Any, who: Person, **headers: str) -> Reply:
        """Send a request and return the whole reply."""
        signed = {"Authorization": f"Bearer {who.token}", **headers}
        return send(self.daemon.base_url, method, path, json.dumps(body).encode(), signed)

    def assert_well(self) -> None:
        """Check that the daemon lives and that nothing unforeseen is in its log."""
        assert self.daemon.process.poll() is None
        log = "".join(self.daemon.log)
        assert "Traceback" not in log, log[-4000:]
        assert " error " not in log, log[-4000:]


def wait_until(is_so: Any, what: str, seconds: float = SECONDS) -> None:
    """Ask again and again until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def write_plugins(folder: Path, plugins: Mapping[str, str]) -> Path:
    """Write plugin files below a folder, unless there are some already, and return their directory."""
    directory = folder / "plugins"
    if not directory.exists():
        directory.mkdir()
        for name, source in plugins.items():
            (directory / f"{name}.py").write_text(source.replace("FOLDER", repr(str(folder))))
    return directory


@contextlib.contextmanager
def opened_house(folder: Path, *, pipes: Mapping[str, str] | None = None, **settings: str) -> Iterator[House]:
    """Run the gateway until the end of the block, with plugins of a test's own or those above."""
    write_plugins(folder, PIPES if pipes is None else pipes)
    with background_upstream() as provider, living(folder, provider, **settings) as house:
        yield house


@contextlib.contextmanager
def living(
    folder: Path, provider: Provider, people: Mapping[str, Person] | None = None, **settings: str
) -> Iterator[House]:
    """Run the gateway over a provider that is there already, so that it may live again on the same state.

    With the people of an earlier life none are made.
    """
    configuration = folder / "gatewayd.toml"
    configuration.write_text(PROVIDER.format(url=provider.url))
    given = {**SETTINGS, "PLUGINS_DIR": str(write_plugins(folder, PIPES)), **settings}
    with running_daemon(folder / "s", "-f", str(configuration), **given) as daemon:
        house = House(daemon, provider, folder, dict(people or {}))
        if people is None:
            house.sign_up()
        yield house
