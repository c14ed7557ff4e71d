"""Something to look at for the commands about chats, tasks and events, in a real daemon."""

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.fakes.daemons.daemon import Daemon
from tests.fakes.storage.chats_site import document

PIPE = '''
import asyncio


class Pipe:
    """Asks its user when it is asked to, and works for ever otherwise."""

    async def pipe(self, body, __event_call__):
        if body["messages"][-1]["content"] != "ask":
            await asyncio.Event().wait()
        return str(await __event_call__({"type": "confirmation", "data": {"title": "Sure?"}}))
'''
SECONDS_BETWEEN = 0.2


class Work:
    """What one user has going on; `user` is an administrator."""

    def __init__(self, daemon: Daemon, user: str) -> None:
        self._daemon = daemon
        self._user = user
        self._key = self._said("key", "create", user, f"work {uuid.uuid4()}", "-o", "name")

    def chats_file(self) -> str:
        """Return a file of one chat."""
        path = self._daemon.state / "chats.json"
        path.write_text(json.dumps([{"chat": document()}]))
        return str(path)

    def chat(self) -> str:
        """Make a chat and return its id."""
        return self._said("chat", "import", self.chats_file(), "--user", self._user, "-o", "name")

    def task(self, question: str = "work") -> str:
        """Start an answer and return the id of its task."""
        path = self._daemon.state / "waiting.py"
        path.write_text(PIPE)
        if self._daemon.run_ctl("function", "show", "waiting").returncode:
            self._said("function", "install", str(path), "--enable")
        wanted = {
            "model": "waiting",
            "messages": [{"role": "user", "content": question}],
            "chat_id": self.chat(),
            "id": str(uuid.uuid4()),
            "session_id": "terminal",
        }
        return str(self._post("/api/chat/completions", wanted)["task_id"])

    @contextmanager
    def call(self) -> Iterator[str]:
        """Give the id of a call that waits while its user listens."""
        command = [sys.executable, "-m", "gatewayctl", "--socket", str(self._daemon.socket)]
        arguments = ["event", "follow", "--user", self._user, "-o", "jsonl"]
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True) as listening:
            assert listening.stdout is not None
            self.task("ask")
            try:
                for line in listening.stdout:
                    call_id = json.loads(line)["call_id"]
                    if call_id:
                        yield call_id
                        return
            finally:
                listening.kill()

    @contextmanager
    def events(self) -> Iterator[None]:
        """Send the user an event again and again."""
        chat_id, is_over = self.chat(), threading.Event()
        event = {"type": "notification", "data": {"type": "info", "content": "hi"}}

        def emit() -> None:
            while not is_over.wait(SECONDS_BETWEEN):
                self._post(f"/api/v1/chats/{chat_id}/messages/a1/event", event)

        thread = threading.Thread(target=emit)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _post(self, path: str, body: Any) -> Any:
        headers = {"Authorization": f"Bearer {self._key}"}
        status, reply = self._daemon.call("POST", path, body, headers)
        assert status == 200, reply
        return reply

    def _said(self, *args: str) -> str:
        done = self._daemon.run_ctl(*args)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextmanager
def surroundings(daemon: Daemon, user: str, line: str) -> Iterator[dict[str, str]]:
    """Make what a command line names, and give it: `{chats}`, `{chat}`, `{task}`, `{call}`.

    A line that follows events gets some.
    """
    wanted = [name for name in ("chats", "chat", "task", "call") if f"{{{name}}}" in line]
    found: dict[str, str] = {}
    if not wanted and not line.startswith("event follow"):
        yield found
        return
    work = Work(daemon, user)
    with ExitStack() as stack:
        if "chats" in wanted:
            found["chats"] = work.chats_file()
        if "chat" in wanted:
            found["chat"] = work.chat()
        if "task" in wanted:
            found["task"] = work.task()
        if "call" in wanted:
            found["call"] = stack.enter_context(work.call())
        if line.startswith("event follow"):
            stack.enter_context(work.events())
        yield found
