"""A gateway for the page: an administrator, a user, a scripted provider and a pipe that does as told."""

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext

from tests.fakes.daemons.chat_site import Person, Turn, messages_of, wait_until
from tests.fakes.daemons.daemon import Daemon, free_port, running_daemon
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import (
    SILENCE,
    FakeUpstream,
    Recorded,
    Reply,
    Step,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)

AUTHS = "/api/v1/auths"
ADMIN, USER = "admin@example.com", "user@example.com"
PASSWORD = "correct horse battery"
MODELS = ("echo", "slow", "thinks")
SETTINGS = {
    "ENABLE_API_KEYS": "true",
    "USER_PERMISSIONS_FEATURES_API_KEYS": "true",
    "BYPASS_MODEL_ACCESS_CONTROL": "true",
    "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
    "WEBUI_NAME": "Example Gateway",
}
CONFIGURATION = """
[[providers]]
name = "hosted"
base_url = "{url}/v1"
"""

OWN_MODULE = """
import { registerEventType } from "#app/core/events";
import { toast } from "#app/core/toasts";

registerEventType("acme:progress", (event) => {
  toast("info", `${event.data.done} of ${event.data.total}`);
});
"""

PLUGINS: Mapping[str, str] = {
    "script": '''"""
title: Script
"""
import asyncio
import json
from pathlib import Path


class Pipe:
    async def pipe(self, body, __event_emitter__, __event_call__):
        """Do the steps of the last question, which is a JSON list.

        {"say": text}, {"emit": event}, {"call": event} whose answer is said as JSON, {"fail": text}, and
        {"wait": name}, which goes on when there is a file of that name in the folder of the site.
        """
        for step in json.loads(body["messages"][-1]["content"]):
            if "say" in step:
                yield step["say"]
            elif "emit" in step:
                await __event_emitter__(step["emit"])
            elif "call" in step:
                yield json.dumps(await __event_call__(step["call"]))
            elif "wait" in step:
                while not (Path(FOLDER) / step["wait"]).exists():
                    await asyncio.sleep(0.02)
            else:
                raise ValueError(step["fail"])
''',
}


class ScriptedProvider(FakeUpstream):
    """A provider with three models.

    `echo` says what it was asked, word by word. `slow` does so too, and stops after its second word until
    `release`. `thinks` gives its reasoning first.
    """

    def _answer(self, request: Recorded, whole: Any, stream: Any, *, default: bool = False) -> Reply:
        body = request.json
        model, content = body.get("model", ""), body["messages"][-1]["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        text = " ".join(part["text"] for part in parts if part["type"] == "text")
        if not body.get("stream"):
            return json_reply(openai_completion(text, model))
        words = [f"{word} " for word in text.split(" ")]
        steps: list[bytes | Step] = [*openai_stream(words, model)]
        if model == "slow":
            steps[2:2] = [SILENCE]
        elif model == "thinks":
            steps[:0] = [sse(openai_chunk(model, reasoning_content="Let me think."))]
        return Reply(steps=steps)


class Runner:
    """Starts the daemon on one port and one state, again and again."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._settings = {"PORT": str(free_port()), **settings}
        self._running = contextlib.ExitStack()

    def start(self) -> Daemon:
        """Start it; the one before must have stopped."""
        configuration = str(self._folder / "gatewayd.toml")
        return self._running.enter_context(
            running_daemon(self._folder / "s", "-f", configuration, **self._settings)
        )

    def stop(self) -> None:
        """Stop it."""
        self._running.close()


@dataclass
class Site:
    """The running gateway. `folder` is where the pipe looks for files; `addresses` are those of views."""

    daemon: Daemon
    provider: Provider
    folder: Path
    runner: Runner
    admin: Person
    user: Person
    addresses: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the page, without a slash at its end."""
        return self.daemon.base_url

    def call(self, method: str, path: str, body: Any = None, who: Person | None = None) -> tuple[int, Any]:
        """Send a request as the administrator, or as somebody else, and return status and body."""
        return self.daemon.call(method, path, body, {"Authorization": f"Bearer {(who or self.admin).token}"})

    def ok(self, method: str, path: str, body: Any = None, who: Person | None = None) -> Any:
        """Send a request that must succeed, and return its body."""
        status, answer = self.call(method, path, body, who)
        assert status == 200, (method, path, status, answer)
        return answer

    def add(self, email: str, role: str = "user") -> Person:
        """Add an account with the common password."""
        form = {"name": email.partition("@")[0].title(), "email": email, "password": PASSWORD, "role": role}
        made = self.ok("POST", f"{AUTHS}/add", form)
        return Person(made["id"], email, made["token"])

    def sign_in(self, context: BrowserContext, email: str = ADMIN, url: str = "") -> None:
        """Give a browser a session of its own, at the address of the site or at another one of it."""
        status, session = self.daemon.call("POST", f"{AUTHS}/signin", {"email": email, "password": PASSWORD})
        assert status == 200, session
        cookie = {"name": "token", "value": session["token"], "url": url or self.url, "httpOnly": True}
        context.add_cookies([{**cookie, "sameSite": "Lax"}])  # type: ignore[list-item]

    def ask(self, model: str, text: str, who: Person | None = None, title: str = "A chat") -> Turn:
        """Store a question with an empty answer, and begin the answer, which goes on by itself."""
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        messages = messages_of(question, answer, text, model)
        for message in messages.values():
            message["timestamp"] = int(time.time())
        chat = {"title": title, "models": [model], "messages": list(messages.values())}
        history = {"currentId": answer, "messages": messages}
        made = self.ok("POST", "/api/v1/chats/new", {"chat": {**chat, "history": history}}, who)
        asked = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True}
        sent = {**asked, "chat_id": made["id"], "id": answer, "session_id": f"api-{uuid.uuid4()}"}
        self.ok("POST", "/api/chat/completions", sent, who)
        return Turn(made["id"], question, answer, text)

    def restart(self) -> None:
        """Stop the gateway and start it again; sessions and what is stored stay."""
        self.runner.stop()
        self.daemon = self.runner.start()

    def script(self, *replies: Reply) -> None:
        """Answer the next requests for chats at the provider with these."""
        self.provider.script(*replies)

    def release(self) -> None:
        """Let the model `slow` go on; `script()` makes it stop again in later answers."""
        self.provider.release()

    def go_on(self, name: str) -> None:
        """Let the step {"wait": name} of the pipe `script` end."""
        (self.folder / name).touch()


def steps(*given: Mapping[str, Any]) -> str:
    """Return the question that makes the pipe `script` do these steps."""
    return json.dumps(given)


@contextlib.contextmanager
def opened_site(
    folder: Path, models: Sequence[str] = MODELS, plugins: Mapping[str, str] = PLUGINS, **settings: str
) -> Iterator[Site]:
    """Run the gateway until the end of the block."""
    directory = folder / "plugins"
    directory.mkdir()
    for name, source in plugins.items():
        (directory / f"{name}.py").write_text(source.replace("FOLDER", repr(str(folder))))
    with background_upstream(models, kind=ScriptedProvider) as provider:
        (folder / "gatewayd.toml").write_text(CONFIGURATION.format(url=provider.url))
        module = folder / "own.js"
        module.write_text(OWN_MODULE)
        given = {**SETTINGS, "PLUGINS_DIR": str(directory), "PAGE_MODULE": str(module), **settings}
        runner = Runner(folder, given)
        try:
            daemon = runner.start()
            form = {"name": "Admin Person", "email": ADMIN, "password": PASSWORD}
            status, made = daemon.call("POST", f"{AUTHS}/signup", form)
            assert status == 200, made
            admin = Person(made["id"], ADMIN, made["token"])
            site = Site(daemon, provider, folder, runner, admin, admin)
            site.user = site.add(USER)
            yield site
        finally:
            runner.stop()


__all__ = ["ADMIN", "PASSWORD", "USER", "Site", "opened_site", "steps", "wait_until"]
