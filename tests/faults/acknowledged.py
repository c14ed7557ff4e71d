"""What clients were told is done, by kind: made under a fault, read back when the fault is over."""

import hashlib
import json
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tests.fakes.daemons.chat_site import CHATS, COMPLETIONS, messages_of
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.faults.lines import Line, LostError

UPLOAD_BYTES = 300_000
UPLOAD_PAUSE = 0.1
"""Seconds in the middle of an upload, so that some are on their way at any time."""

FILES = "/api/v1/files"


class Kept(ABC):
    """Things of one kind, each noted once its request was answered."""

    def __init__(self) -> None:
        self._noted: dict[str, Any] = {}

    @property
    def count(self) -> int:
        """How many things were acknowledged."""
        return len(self._noted)

    @abstractmethod
    def make(self, line: Line, number: int) -> None:
        """Make one thing and note it; raises LostError."""

    @abstractmethod
    def is_there(self, line: Line, key: str, noted: Any) -> bool:
        """Tell whether a thing is there as it was acknowledged."""

    def missing(self, line: Line) -> Sequence[str]:
        """Return what was acknowledged and is not there, or is not what it was."""
        return [key for key, noted in self._noted.items() if not self.is_there(line, key, noted)]


class Reads(Kept):
    """Requests that change nothing."""

    def make(self, line: Line, number: int) -> None:
        self._noted[str(number)] = line.tell("GET", f"{CHATS}/?page=1")

    def is_there(self, line: Line, key: str, noted: Any) -> bool:
        return isinstance(noted, list)


class Chats(Kept):
    """Chats that are stored."""

    def make(self, line: Line, number: int) -> None:
        title = f"chat {number}"
        document = {"title": title, "models": ["m"], "history": {"messages": {}, "currentId": None}}
        self._noted[line.tell("POST", f"{CHATS}/new", {"chat": document})["id"]] = title

    def is_there(self, line: Line, key: str, noted: Any) -> bool:
        return bool(line.tell("GET", f"{CHATS}/{key}")["title"] == noted)


class Uploads(Kept):
    """Files, which are stored and not processed."""

    def make(self, line: Line, number: int) -> None:
        content = hashlib.shake_256(str(number).encode()).hexdigest(UPLOAD_BYTES // 2).encode()
        body = form(file_part(content, f"{number}.txt"))
        made = json.loads(line.ask("POST", f"{FILES}/?process=false", body, FORM, UPLOAD_PAUSE))
        self._noted[made["id"]] = hashlib.sha256(content).hexdigest()

    def is_there(self, line: Line, key: str, noted: Any) -> bool:
        return hashlib.sha256(line.ask("GET", f"{FILES}/{key}/content")).hexdigest() == noted


class Runs(Kept):
    """Answers that go on without their client: a model says again what it is asked."""

    def __init__(self, model: str) -> None:
        super().__init__()
        self._model = model

    def make(self, line: Line, number: int) -> None:
        text = f"said {number} " + "word " * 10
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        messages = messages_of(question, answer, text, self._model)
        document = {
            "title": "run",
            "models": [self._model],
            "history": {"currentId": answer, "messages": messages},
        }
        chat_id = line.tell("POST", f"{CHATS}/new", {"chat": document})["id"]
        body = {"model": self._model, "messages": [{"role": "user", "content": text}], "stream": True}
        asked = {**body, "chat_id": chat_id, "id": answer, "session_id": str(uuid.uuid4())}
        if not line.tell("POST", COMPLETIONS, asked)["task_ids"]:
            raise LostError("no task")
        self._noted[chat_id] = answer, text

    def is_there(self, line: Line, key: str, noted: Any) -> bool:
        answer, text = noted
        stored = line.tell("GET", f"{CHATS}/{key}")["chat"]["history"]["messages"][answer]
        return (stored["content"].strip(), stored["done"], stored.get("error")) == (text.strip(), True, None)


class Some:
    """A chat and a file, which are made of one client and read back by another one or later."""

    def __init__(self) -> None:
        self._kept: Sequence[Kept] = (Chats(), Uploads())

    def make(self, line: Line) -> None:
        """Make one more of each; raises LostError."""
        for kept in self._kept:
            kept.make(line, kept.count)

    def assert_there(self, line: Line) -> None:
        """Check that some were made, and that each is there as it was acknowledged."""
        for kept in self._kept:
            assert kept.count
            assert kept.missing(line) == []


class Load:
    """Workers that make things until so many are made; what is lost is noted and does not end them."""

    def __init__(self) -> None:
        self.done = 0
        self.lost: list[str] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def add(self, kept: Kept, count: int, lines: Sequence[Line]) -> None:
        """Make so many things of a kind, over each of these lines at the same time."""
        numbers = iter(range(count))
        for line in lines:
            self._threads.append(threading.Thread(target=self._work, args=(kept.make, numbers, line)))

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        """Wait until all is made."""
        for thread in self._threads:
            thread.join()

    def _work(self, make: Callable[[Line, int], None], numbers: Iterator[int], line: Line) -> None:
        while (number := self._next(numbers)) is not None:
            try:
                make(line, number)
            except LostError as error:
                self.lost.append(str(error))
            with self._lock:
                self.done += 1
        line.close()

    def _next(self, numbers: Iterator[int]) -> int | None:
        with self._lock:
            return next(numbers, None)
