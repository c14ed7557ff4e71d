"""A running gateway with plugins from a directory, its users, chats and listeners, over HTTP."""

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http import event_listener as listening

CORPUS = Path(__file__).parents[2] / "plugins" / "corpus"
BAD = CORPUS / "bad"
PASSWORD = "a-long-password"

Frame = dict[str, Any]


@dataclass
class Asked:
    """A message of a stored chat that is being answered, and the reply to the request."""

    chat_id: str
    message_id: str
    reply: Any = None


class Listener(listening.Listener):
    """What a user of a site hears."""

    def __init__(self, site: "Site", token: str, query: str = "", last_id: str | None = None) -> None:
        headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last_id} if last_id else {})
        super().__init__(site.daemon.base_url, headers, f"/api/v1/events{query}")
        self.session_id: str = self.opened["session_id"]

    @property
    def frames(self) -> list[Frame]:
        """What was heard so far."""
        return [one.data for one in list(self.heard)]

    def first(self, wanted: Callable[[Frame], object]) -> Frame:
        """Return the first frame, of those that came too, that is wanted."""
        self.wait(lambda _: any(map(wanted, self.frames)), "the frame")
        return next(filter(wanted, self.frames))

    def told(self, asked: Asked) -> list[Frame]:
        """Return `{"type", "data"}` of what was told about a message, once its answer is over."""
        self.first(lambda frame: _is_over(frame) and frame["message_id"] == asked.message_id)
        return [frame["data"] for frame in self.frames if frame["message_id"] == asked.message_id]

    def call_of(self, asked: Asked) -> Frame:
        """Return the question about a message."""
        return self.first(lambda frame: "call_id" in frame and frame["message_id"] == asked.message_id)


def _is_over(frame: Frame) -> bool:
    return bool(frame["data"] == {"type": "chat:active", "data": {"active": False}})


@dataclass
class Site:
    """A gateway with an administrator."""

    daemon: Daemon
    token: str
    user: Mapping[str, Any]

    def call(self, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any]:
        """Send a request as the administrator, or as somebody else."""
        return self.daemon.call(method, path, body, {"Authorization": f"Bearer {token or self.token}"})

    def good(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        """Send a request that has to succeed, and return the reply."""
        status, reply = self.call(method, path, body, token)
        assert status == 200, (path, status, reply)
        return reply

    def complete(self, model: str, text: str, token: str = "", **fields: Any) -> tuple[int, Any]:
        """Ask a model directly and return status and body."""
        messages = fields.pop("messages", [{"role": "user", "content": text}])
        form = {"model": model, "messages": messages, **fields}
        return self.call("POST", "/api/chat/completions", form, token)

    def say(self, model: str, text: str, **fields: Any) -> Any:
        """Return the content that a model answers directly."""
        status, reply = self.complete(model, text, **fields)
        assert status == 200, reply
        return reply["choices"][0]["message"]["content"]

    def frames(self, model: str, text: str, **fields: Any) -> list[Any]:
        """Return the frames of a streamed answer, the last as the text `[DONE]`."""
        status, reply = self.complete(model, text, stream=True, **fields)
        assert status == 200, reply
        lines = [line[6:] for line in reply.splitlines() if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]

    def stream(self, model: str, text: str, **fields: Any) -> str:
        """Return the text of a streamed answer."""
        frames = self.frames(model, text, **fields)
        assert frames[-1] == "[DONE]", frames
        deltas = [choice["delta"] for frame in frames[:-1] for choice in frame.get("choices", [])]
        return "".join(delta.get("content") or "" for delta in deltas)

    def start(self, model: str, text: str, session_id: str = "somewhere", **fields: Any) -> Asked:
        """Ask in a new chat, without waiting for the answer."""
        token = fields.pop("token", "")
        asked = self.new_chat(model, text, token)
        form = {
            "model": model,
            "stream": True,
            "chat_id": asked.chat_id,
            "id": asked.message_id,
            "session_id": session_id,
            "messages": [{"role": "user", "content": text}],
            **fields,
        }
        asked.reply = self.good("POST", "/api/chat/completions", form, token)
        return asked

    def new_chat(self, model: str, text: str, token: str = "") -> Asked:
        """Store a chat with a question and an empty answer."""
        question, answer = str(uuid.uuid4()), str(uuid.uuid4())
        messages = {
            question: {
                "id": question,
                "parentId": None,
                "childrenIds": [answer],
                "role": "user",
                "content": text,
            },
            answer: {
                "id": answer,
                "parentId": question,
                "childrenIds": [],
                "role": "assistant",
                "content": "",
                "model": model,
                "done": False,
            },
        }
        history = {"currentId": answer, "messages": messages}
        chat = {"title": "Chat", "models": [model], "history": history, "messages": list(messages.values())}
        made = self.good("POST", "/api/v1/chats/new", {"chat": chat}, token)
        return Asked(made["id"], answer)

    def finish(self, asked: Asked, token: str = "") -> Any:
        """Wait until nothing runs for a chat, and return the message as it is stored."""
        path = f"/api/tasks/chat/{asked.chat_id}"
        wait_until(lambda: not self.good("GET", path, token=token)["task_ids"])
        return self.message(asked, token)

    def message(self, asked: Asked, token: str = "") -> Any:
        """Return the message as it is stored now."""
        chat = self.good("GET", f"/api/v1/chats/{asked.chat_id}", token=token)["chat"]
        return chat["history"]["messages"][asked.message_id]

    def ask(self, model: str, text: str, **fields: Any) -> Any:
        """Ask in a new chat and return the message as it is stored in the end."""
        return self.finish(self.start(model, text, **fields), fields.get("token", ""))

    def act(self, action: str, text: str = "some text", **fields: Any) -> tuple[int, Any]:
        """Press a button under a message and return status and reply."""
        message = {"id": fields.get("id", "m1"), "role": "assistant", "content": text, "timestamp": 1}
        form = {"model": "echo", "messages": [message], "chat_id": "", "session_id": "", "id": "m1", **fields}
        return self.call("POST", f"/api/chat/actions/{quote(action)}", form)

    def with_filters(self, *filters: str, base: str = "echo") -> str:
        """Return the id of a model over another one, with filters attached to it."""
        model = f"{base}-with-{'-'.join(filters)}"
        form = {"id": model, "name": model, "base_model_id": base, "meta": {"filterIds": list(filters)}}
        self.good("POST", "/api/v1/models/create", {**form, "params": {}})
        return model

    def run_tools(self, tool_id: str, *calls: tuple[str, Mapping[str, Any]], **fields: Any) -> list[Any]:
        """Let a model call functions of a tool and return what it was given."""
        told = self.say("tool_caller", json.dumps(calls), tool_ids=[tool_id], execute_tools=True, **fields)
        return list(json.loads(told))

    @contextlib.contextmanager
    def listening(self, token: str = "", query: str = "", last_id: str | None = None) -> Iterator[Listener]:
        """Listen to the events of a user while inside."""
        listener = Listener(self, token or self.token, query, last_id)
        try:
            yield listener
        finally:
            listener.close()

    def new_user(self, name: str) -> str:
        """Make an account and return its token."""
        form = {
            "name": name,
            "email": f"{uuid.uuid4().hex}@example.org",
            "password": PASSWORD,
            "role": "user",
        }
        token: str = self.good("POST", "/api/v1/auths/add", form)["token"]
        return token

    def log(self) -> str:
        """Return what the daemon has written."""
        return "".join(self.daemon.log)


def check_passport(shown: dict[str, Any], site: Site, plugin_id: str, asked: Asked | None) -> None:
    """Check what every kind is told; of a stored chat when there is one."""
    user = shown["__user__"]
    assert (user["id"], user["name"], user["email"]) == (site.user["id"], "Ada", "ada@example.org")
    assert (user["role"], user["valves"]) == ("admin", "UserValves")
    assert shown["__request__"] == "Request"
    assert (shown["__event_emitter__"], shown["__event_call__"]) == ("function", "function")
    assert (shown["__id__"], shown["__pipe_id__"]) == (plugin_id, plugin_id)
    assert shown["__valves__"] == "Valves"
    assert shown["__oauth_token__"] is None
    assert shown["__task__"] is shown["__task_body__"] is None
    assert isinstance(shown["__messages__"], list)
    assert isinstance(shown["__tools__"], dict)
    metadata = shown["__metadata__"]
    assert metadata["user_id"] == site.user["id"]
    assert isinstance(metadata["features"], dict)
    assert isinstance(metadata["variables"], dict)
    assert isinstance(metadata["params"], dict)
    assert metadata["model"]["id"] == shown["__model__"]["id"]
    ids = ("", None, None) if asked is None else (asked.chat_id, asked.message_id, "here")
    assert (shown["__chat_id__"], shown["__message_id__"], shown["__session_id__"]) == ids
    assert (metadata["chat_id"], metadata["message_id"], metadata["session_id"]) == ids


def wait_until(holds: Callable[[], object], seconds: float = listening.SECONDS) -> None:
    """Wait until something holds; fail after a while."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError("it did not come to pass")
        time.sleep(0.02)


@contextlib.contextmanager
def plugged(state: Path, plugins: Path, **settings: str) -> Iterator[Site]:
    """Run a gateway with the plugins of a directory."""
    settings = {"ENABLE_FORWARD_USER_INFO_HEADERS": "true", **settings}
    with running_daemon(state, PLUGINS_DIR=str(plugins), **settings) as daemon:
        form = {"email": "ada@example.org", "password": PASSWORD, "name": "Ada"}
        status, reply = daemon.call("POST", "/api/v1/auths/signup", form)
        assert status == 200, reply
        yield Site(daemon, reply["token"], reply)
