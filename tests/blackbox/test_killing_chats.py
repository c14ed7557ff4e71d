"""A daemon that is killed at any moment has kept every write to a chat that it acknowledged.

Several clients make, change and delete chats, put messages, tell events and ask for answers while the daemon
is killed at a random moment, again and again on the same state. What was answered with 200 is there in the
next life; the one write of each client that was cut off is there whole, or not at all.
"""

import contextlib
import random
import shutil
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.daemons.chat_site import CHATS, COMPLETIONS, Person, living, messages_of
from tests.fakes.daemons.killed_daemon_clients import Caller, Client, assert_busy, kill_under
from tests.fakes.documents.stored_state import assert_sound, copy_database
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.storage.postgres import Postgres

SEED = 20_261_122
IMPORTED_MESSAGES = 150
RESTARTED = {"content": "the gateway was restarted while this was answered"}

Record = dict[str, Any]


class Writer(Caller):
    """A user who writes chats."""

    def chat(self, title: str, model: str = "o.m") -> tuple[str, str]:
        """Make a chat of a question and an empty answer; return its id and that of the answer."""
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        history = {"currentId": answer, "messages": messages_of(question, answer, title, model)}
        made = self.call("POST", f"{CHATS}/new", {"chat": {"title": title, "history": history}})
        return made["id"], answer

    def message(self, chat_id: str, message_id: str) -> Record:
        """Return a stored message."""
        found = self.call("GET", f"{CHATS}/{chat_id}")["chat"]["history"]["messages"]
        return dict(found[message_id])


class ChatClient(Client):
    """A client that writes chats."""

    caller: Writer


class Chats(ChatClient):
    """Makes, renames, pins and deletes chats."""

    def __init__(self, caller: Writer, seed: int) -> None:
        super().__init__(caller, seed)
        self.titles: dict[str, str] = {}
        self.gone: set[str] = set()
        self.pending: tuple[str, str | None] | None = None

    def change(self) -> None:
        title = f"title {next(self.numbers)}"
        if len(self.titles) < 3 or self.random.random() < 0.3:
            self.titles[self.caller.chat(title)[0]] = title
            return
        chosen = self.random.choice(list(self.titles))
        if self.random.random() < 0.3:
            self.pending = (chosen, None)
            assert self.caller.call("DELETE", f"{CHATS}/{chosen}") is True
        else:
            self.pending = (chosen, title)
            self.caller.call("POST", f"{CHATS}/{chosen}", {"chat": {"title": title, "note": title}})
        self.settle()

    def settle(self) -> None:
        """Note that the pending write happened."""
        assert self.pending is not None
        chosen, title = self.pending
        self.pending = None
        if title is None:
            del self.titles[chosen]
            self.gone.add(chosen)
        else:
            self.titles[chosen] = title

    def check(self) -> None:
        listed = {item["id"]: item["title"] for item in self.caller.call("GET", f"{CHATS}/")}
        if self.pending is not None and listed.get(self.pending[0]) == self.pending[1]:
            self.settle()
        self.pending = None
        assert {name: listed.get(name) for name in self.titles} == self.titles
        for chat_id in list(self.titles)[-5:]:
            record = self.caller.call("GET", f"{CHATS}/{chat_id}")
            assert record["chat"].get("note", record["title"]) == record["title"]
            assert len(record["chat"]["history"]["messages"]) == 2
        assert not self.gone & listed.keys()
        for chat_id in list(self.gone)[-3:]:
            assert self.caller.ask("GET", f"{CHATS}/{chat_id}").status == 404


class Imports(ChatClient):
    """Imports several chats at a time, which take several transactions; all are there, or none."""

    def __init__(self, caller: Writer, seed: int) -> None:
        super().__init__(caller, seed)
        self.sizes: dict[str, int] = {}
        self.unsure: dict[str, int] = {}

    def change(self) -> None:
        nodes = [{"role": "user", "content": f"text {number}"} for number in range(IMPORTED_MESSAGES)]
        count, title = self.random.randrange(1, 5), f"import {next(self.numbers)}"
        self.unsure = {title: count}
        form = {"chat": {"title": title, "messages": nodes}, "archived": True}
        assert len(self.caller.call("POST", f"{CHATS}/import", {"chats": [form] * count})) == count
        self.sizes |= self.unsure
        self.unsure = {}

    def check(self) -> None:
        listed = self.caller.call("GET", f"{CHATS}/archived")
        found = Counter(item["title"] for item in listed)
        self.sizes |= {title: count for title, count in self.unsure.items() if title in found}
        self.unsure = {}
        assert found == self.sizes
        for item in listed[:2]:
            record = self.caller.call("GET", f"{CHATS}/{item['id']}")
            assert len(record["chat"]["history"]["messages"]) == IMPORTED_MESSAGES


class Messages(ChatClient):
    """Puts messages one after another, and changes single members of earlier ones."""

    def __init__(self, caller: Writer, seed: int) -> None:
        super().__init__(caller, seed)
        self.chat_id = ""
        self.known: dict[str, Record] = {}
        self.unsure: dict[str, Record] = {}

    def change(self) -> None:
        if not self.chat_id:
            self.chat_id = self.caller.chat("messages")[0]
        number = next(self.numbers)
        if len(self.known) < 2 or self.random.random() < 0.3:
            name, fields = str(uuid.uuid4()), {"content": f"text {number}"}
            self.unsure = {name: fields}
            self.caller.call("POST", f"{CHATS}/{self.chat_id}/messages/{name}", fields)
        else:
            chosen = self.random.sample(sorted(self.known), 2)
            self.unsure = {name: {**self.known[name], "mark": number} for name in chosen}
            change = {name: {"id": name, "mark": number} for name in chosen}
            self.caller.call("POST", f"{CHATS}/{self.chat_id}", {"chat": {"history": {"messages": change}}})
        self.known |= self.unsure
        self.unsure = {}

    def check(self) -> None:
        if not self.chat_id:
            return
        history = self.caller.call("GET", f"{CHATS}/{self.chat_id}")["chat"]["history"]
        found = history["messages"]
        seen = [self.has(found, name, fields) for name, fields in self.unsure.items()]
        # All messages of one change, or none.
        assert len(set(seen)) <= 1, (self.unsure, found)
        if seen and seen[0]:
            self.known |= self.unsure
        self.unsure = {}
        for name, fields in self.known.items():
            assert self.has(found, name, fields), (found.get(name), fields)
        assert history["currentId"] in found
        assert all(item["parentId"] is None or item["parentId"] in found for item in found.values())

    def has(self, found: dict[str, Record], name: str, fields: Record) -> bool:
        return name in found and {key: found[name].get(key) for key in fields} == fields


class Events(ChatClient):
    """Tells statuses and pieces of text; each is there once, in its order."""

    def __init__(self, caller: Writer, seed: int) -> None:
        super().__init__(caller, seed)
        self.place: tuple[str, str] | None = None
        self.statuses: list[str] = []
        self.text = ""
        self.unsure: tuple[str, str] = ("", "")

    def change(self) -> None:
        if self.place is None:
            self.place = self.caller.chat("events")
        word = f"{next(self.numbers)} "
        kind = self.random.choice(["status", "message"])
        data = {"description": word, "done": True} if kind == "status" else {"content": word}
        self.unsure = (kind, word)
        path = f"{CHATS}/{self.place[0]}/messages/{self.place[1]}/event"
        assert self.caller.call("POST", path, {"type": kind, "data": data}) is True
        self.settle()

    def settle(self) -> None:
        """Note that the last event was stored."""
        kind, word = self.unsure
        self.unsure = ("", "")
        if kind == "status":
            self.statuses.append(word)
        else:
            self.text += word

    def check(self) -> None:
        if self.place is None:
            return
        message = self.caller.message(*self.place)
        statuses = [item["description"] for item in message.get("statusHistory", [])]
        kind, word = self.unsure
        if word and (statuses[-1:] == [word] if kind == "status" else message["content"].endswith(word)):
            self.settle()
        self.unsure = ("", "")
        assert statuses == self.statuses
        assert message["content"] == self.text


class Answers(ChatClient):
    """Asks for answers that nobody waits for."""

    def __init__(self, caller: Writer, seed: int) -> None:
        super().__init__(caller, seed)
        self.begun: dict[tuple[str, str], str] = {}
        self.ended: dict[tuple[str, str], Record] = {}

    def change(self) -> None:
        text = " ".join([f"answer {next(self.numbers)}"] * 20)
        chat_id, message_id = self.caller.chat(text, "echo")
        body = {
            "model": "echo",
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "chat_id": chat_id,
            "id": message_id,
            "session_id": "s",
        }
        self.caller.call("POST", COMPLETIONS, body)
        self.begun[chat_id, message_id] = text

    def check(self) -> None:
        for place, text in self.begun.items():
            message = self.caller.message(*place)
            assert message["done"] is True, message
            is_whole = message["content"] == text and "error" not in message
            assert is_whole or message["error"] == RESTARTED, message
            self.ended[place] = message
        self.begun.clear()
        for place, message in list(self.ended.items())[-5:]:
            assert self.caller.message(*place) == message


class Lives:
    """The lives of one daemon: start, check, write, die."""

    def __init__(self, folder: Path, provider: Provider, seed: int, settings: dict[str, str]) -> None:
        self.folder = folder
        self.provider = provider
        self.settings = settings
        self.random = random.Random(seed)
        self.caller = Writer()
        self.people: dict[str, Person] | None = None
        kinds = (Chats, Messages, Events, Answers, Imports)
        self.clients = [kind(self.caller, seed + place) for place, kind in enumerate(kinds)]

    @contextlib.contextmanager
    def started(self) -> Any:
        with living(self.folder, self.provider, self.people, **self.settings) as house:
            self.people = house.people
            self.caller.daemon, self.caller.token = house.daemon, house.ann.key
            for client in self.clients:
                client.check()
            yield house

    def live(self) -> None:
        """One life: everything acknowledged is there, then writes until the end comes."""
        with self.started() as house:
            kill_under(self.clients, house.daemon, self.random)

    def end(self) -> None:
        """The last life, which ends well."""
        with self.started() as house:
            house.assert_well()
            assert house.daemon.stop() == 0
        assert_busy(self.clients)


def live_on_sqlite(folder: Path, deaths: int) -> None:
    copy = folder / "copy"
    with background_upstream() as provider:
        lives = Lives(folder, provider, SEED, {})
        for _ in range(deaths):
            lives.live()
            copy.mkdir()
            assert_sound(copy_database(folder / "s", copy))
            shutil.rmtree(copy)
        lives.end()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_sixty_deaths_on_sqlite(tmp_path: Path) -> None:
    live_on_sqlite(tmp_path, 60)


@pytest.mark.slow
def test_five_deaths_on_sqlite(tmp_path: Path) -> None:
    live_on_sqlite(tmp_path, 5)


@pytest.mark.slow
def test_three_deaths_on_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    with background_upstream() as provider:
        lives = Lives(tmp_path, provider, SEED + 1, {"DATABASE_URL": postgres.migrated_database()})
        for _ in range(3):
            lives.live()
        lives.end()
