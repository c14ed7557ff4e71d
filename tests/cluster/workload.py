"""What clients do while the bed is broken: chats, files, answers, events, and a session that is revoked."""

import contextlib
import http.client
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from gatewayd.cluster.freshness import boottime
from tests.fakes.cluster.bed import Bed
from tests.fakes.cluster.checkers import Connected, Frame, Writes
from tests.fakes.cluster.history import Asked
from tests.fakes.daemons.chat_site import (
    AUTHS,
    CHATS,
    COMPLETIONS,
    PASSWORD,
    Person,
    Turn,
    messages_of,
)
from tests.fakes.http.event_listener import Heard, RefusedError
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.http.raw_http import send

LOST = (OSError, urllib.error.URLError, http.client.HTTPException)
"""What a client gets in the place of an answer."""

PAUSE_SECONDS = 0.1
LAST_SECONDS = 15.0
ANSWER = "Hello from m"


@dataclass
class History:
    """What was sent and what came of it. `broken` are the boot times between which something was broken."""

    chats: Writes = field(default_factory=Writes)
    files: dict[str, bytes] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    told: list[tuple[float, int]] = field(default_factory=list)
    unsure: set[int] = field(default_factory=set)
    heard: list[Connected | Frame] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    revoked_at: float | None = None
    failures: list[str] = field(default_factory=list)


class Workload:
    """Clients that go on until the end of `running`; each request is sent once."""

    def __init__(self, bed: Bed) -> None:
        self.bed, self.history = bed, History()
        self._ended, self._quiet = threading.Event(), threading.Event()
        self._last_id: str | None = None
        self._numbers = iter(range(1, 1_000_000))
        self._turn = bed.house.begin()
        self.person = self._sign_in()

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Let all clients run."""
        works = [self._write, self._upload, self._answer, self._tell, self._ask]
        threads = [threading.Thread(target=self._guard, args=(work, self._ended)) for work in works]
        reader = threading.Thread(target=self._guard, args=(self._listen, self._quiet))
        for thread in (*threads, reader):
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()
            # What was told last may still be on its way.
            deadline = time.monotonic() + LAST_SECONDS
            while not self._has_all() and time.monotonic() < deadline:
                time.sleep(0.05)
            self._quiet.set()
            reader.join()

    @contextlib.contextmanager
    def revoking(self) -> Iterator[None]:
        """End the session that a client asks with, on any node; it may take until the end of the block."""
        thread = threading.Thread(target=self._revoke)
        thread.start()
        yield
        thread.join()

    def _revoke(self) -> None:
        while self.history.revoked_at is None:
            with contextlib.suppress(*LOST):
                status, _ = self.bed.house.call("GET", f"{AUTHS}/signout", None, self.person)
                # With 401 an earlier try has ended it, whose answer was lost.
                if status in {200, 401}:
                    self.history.revoked_at = boottime()
            time.sleep(PAUSE_SECONDS)

    def wait_steady(self) -> None:
        """Wait until every client has got something."""
        history, deadline = self.history, time.monotonic() + 60
        while not (
            history.chats.acknowledged and history.files and history.turns and history.heard and history.asked
        ):
            assert time.monotonic() < deadline, history
            time.sleep(0.05)

    def wait_asked(self) -> None:
        """Wait until the client has asked when the session had to be over on every node."""
        assert self.history.revoked_at is not None
        after, deadline = self.history.revoked_at + 1.0, time.monotonic() + 60
        while not any(each.sent_at > after for each in list(self.history.asked)):
            assert time.monotonic() < deadline, self.history.asked[-3:]
            time.sleep(0.05)

    def _sign_in(self) -> Person:
        ann = self.bed.house.ann
        made = self.bed.house.ok("POST", f"{AUTHS}/signin", {"email": ann.email, "password": PASSWORD})
        return Person(ann.id, ann.email, made["token"])

    def _guard(self, work: Callable[[], None], ended: threading.Event) -> None:
        while not ended.is_set():
            try:
                work()
            except Exception as error:
                self.history.failures.append(f"{work.__name__}: {error!r}")
                return
            ended.wait(PAUSE_SECONDS)

    def _write(self) -> None:
        title = f"chat-{uuid.uuid4()}"
        document = {"title": title, "models": ["o.m"], "messages": [], "history": {"messages": {}}}
        self.history.chats.unknown.add(title)
        with contextlib.suppress(*LOST):
            status, _ = self.bed.house.call("POST", f"{CHATS}/new", {"chat": document})
            if status == 200:
                self.history.chats.acknowledged.add(title)

    def _upload(self) -> None:
        content = " ".join(f"word{number}" for number in range(600)) + f" {uuid.uuid4()}"
        headers = {"Authorization": f"Bearer {self.bed.house.ann.token}", "Content-Type": FORM}
        with contextlib.suppress(*LOST):
            base = self.bed.house.daemon.base_url
            reply = send(base, "POST", "/api/v1/files/", form(file_part(content.encode())), headers)
            if reply.status == 200:
                self.history.files[reply.json["id"]] = content.encode()
        self._ended.wait(3 * PAUSE_SECONDS)

    def _answer(self) -> None:
        house = self.bed.house
        question, answer, text = str(uuid.uuid4()), str(uuid.uuid4()), f"q-{uuid.uuid4()}"
        messages = messages_of(question, answer, text, "o.m")
        history = {"currentId": answer, "messages": messages}
        document = {"title": text, "models": ["o.m"], "messages": [], "history": history}
        self.history.chats.unknown.add(text)
        with contextlib.suppress(*LOST):
            status, made = house.call("POST", f"{CHATS}/new", {"chat": document})
            if status != 200:
                return
            self.history.chats.acknowledged.add(text)
            turn = Turn(made["id"], question, answer, text)
            status, _ = house.call("POST", COMPLETIONS, house.body(turn, session_id=f"api-{uuid.uuid4()}"))
            if status == 200:
                self.history.turns.append(turn)

    def _tell(self) -> None:
        number = next(self._numbers)
        path = f"{CHATS}/{self._turn.chat_id}/messages/{self._turn.answer}/event"
        event = {"type": "status", "data": {"description": str(number), "done": False}}
        status = 0
        with contextlib.suppress(*LOST):
            status, _ = self.bed.house.call("POST", path, event)
        if status != 200:
            self.history.unsure.add(number)
        self.history.told.append((boottime(), number))

    def _listen(self) -> None:
        """Connect, and read until the stream ends; come again with the last id."""
        last_id = self._last_id
        try:
            listener = self.bed.house.listen(self.bed.house.ann, last_id)
        except (*LOST, RefusedError, AssertionError):
            return
        with listener:
            opened: Mapping[str, object] = listener.opened
            self.history.heard.append(Connected(has_gap=bool(opened.get("gap"))))
            self._last_id = str(opened.get("resume_from") or last_id or "")
            taken = 0
            while not self._quiet.is_set():
                is_over = listener.is_over
                for frame in listener.heard[taken:]:
                    taken += 1
                    self._take(frame)
                if is_over and taken == len(listener.heard):
                    return
                time.sleep(0.02)

    def _take(self, frame: Heard) -> None:
        self._last_id = frame.id or self._last_id
        if frame.type == "status" and frame.data["chat_id"] == self._turn.chat_id:
            self.history.heard.append(Frame(int(frame.payload["description"])))

    def _has_all(self) -> bool:
        """Whether the last event that was acknowledged came."""
        sure = [number for _, number in self.history.told if number not in self.history.unsure]
        return not sure or Frame(sure[-1]) in self.history.heard

    def _ask(self) -> None:
        """Ask with the session, whether or not it is revoked."""
        request = urllib.request.Request(f"{self.bed.house.daemon.base_url}{AUTHS}/")
        request.add_header("Authorization", f"Bearer {self.person.token}")
        sent_at, status = boottime(), 0
        with contextlib.suppress(*LOST):
            try:
                with urllib.request.urlopen(request, timeout=20) as reply:
                    status = reply.status
            except urllib.error.HTTPError as error:
                with error:
                    status = error.code
        self.history.asked.append(Asked("any", sent_at, status == 200, is_unknown=status == 0))
