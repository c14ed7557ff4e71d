"""One request for each row of chats, tasks, events and plugins, which succeeds for who owns what it names."""

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from gatewayd.http.routes import BASES
from tests.fakes.daemons.role_site import Site
from tests.fakes.http.samples import TURNS, Row, Sample, plain

CHATS, EVENTS, TASKS, FOLDERS = "/api/v1/chats", "/api/v1/events", "/api/tasks", "/api/v1/folders"
FUNCTIONS, TOOLS, SERVERS = "/api/v1/functions", "/api/v1/tools", "/api/v1/configs/tool_servers"
LIMITS = "/api/v1/limits"
PERMISSIONS = {
    "USER_PERMISSIONS_WORKSPACE_TOOLS_ACCESS": "true",
    "USER_PERMISSIONS_WORKSPACE_TOOLS_EXPORT": "true",
    "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
}
"""What lets users have tools of their own, and external tools send events."""

VALVES = """
from pydantic import BaseModel


class {name}:
    class Valves(BaseModel):
        a: int = 1

    class UserValves(BaseModel):
        b: int = 1

"""
TOOL = VALVES.format(name="Tools") + '    def look(self) -> str:\n        """Look."""\n        return ""\n'
FILTER = VALVES.format(name="Filter") + "    def inlet(self, body):\n        return body\n"
ACTION = "class Action:\n    async def action(self, body):\n        return body\n"

OwnSample = Callable[[Site, str], tuple[str, Any]]
"""Makes the path and body of a request about something that the holder of a token owns."""


def with_limit(site: Site) -> tuple[str, Any]:
    """Name a limit of a model that nobody asks."""
    made = site.call("PUT", LIMITS, {"model": "unused", "parallel": 5}, site.admin)[1]
    return f"{LIMITS}/{made['id']}", None


def add_chat(site: Site, token: str, *, is_shared: bool = False) -> dict[str, str]:
    """Make a chat of one message and return the ids that paths name."""
    message = str(uuid.uuid4())
    node = {"id": message, "parentId": None, "childrenIds": [], "role": "user", "content": "hi"}
    chat = {"title": "T", "history": {"currentId": message, "messages": {message: node}}}
    status, made = site.call("POST", f"{CHATS}/new", {"chat": chat}, token)
    assert status == 200, made
    share_id = ""
    if is_shared:
        share_id = site.call("POST", f"{CHATS}/{made['id']}/share", {}, token)[1]["share_id"]
    return {"id": made["id"], "chat_id": made["id"], "message_id": message, "share_id": share_id}


def with_chat(template: str, body: Any = None) -> OwnSample:
    return lambda site, token: (template.format(**add_chat(site, token)), body)


def with_folder(template: str, body: Any = None) -> OwnSample:
    """Name a folder that the holder of a token owns."""

    def sample(site: Site, token: str) -> tuple[str, Any]:
        status, made = site.call("POST", f"{FOLDERS}/", {"name": f"f{next(site.numbers)}"}, token)
        assert status == 200, made
        return template.format(id=made["id"], folder_id=made["id"]), body

    return sample


def with_shared(template: str, body: Any = None) -> Sample:
    return lambda site: (template.format(**add_chat(site, site.user, is_shared=True)), body)


def plugin(name: str, source: str) -> dict[str, Any]:
    """Return a plugin to install."""
    return {"id": name, "name": name, "content": source, "meta": {"description": ""}}


def add_plugin(site: Site, token: str, path: str, source: str) -> str:
    """Install a plugin and return its id."""
    name = f"p{next(site.numbers)}"
    status, made = site.call("POST", f"{path}/create", plugin(name, source), token)
    assert status == 200, made
    return name


def with_tool(template: str, body: Any = None) -> OwnSample:
    return lambda site, token: (template.format(id=add_plugin(site, token, TOOLS, TOOL)), body)


def with_function(template: str, body: Any = None) -> Sample:
    return lambda site: (template.format(id=add_plugin(site, site.admin, FUNCTIONS, FILTER)), body)


def with_active_function(template: str, body: Any = None) -> Sample:
    """Name a function that is on: what users set is for those alone."""

    def sample(site: Site) -> tuple[str, Any]:
        name = add_plugin(site, site.admin, FUNCTIONS, FILTER)
        assert site.call("POST", f"{FUNCTIONS}/id/{name}/toggle", {}, site.admin)[0] == 200
        return template.format(id=name), body

    return sample


def with_action(site: Site) -> tuple[str, Any]:
    """Ask for an action of all models, on no chat."""
    name = add_plugin(site, site.admin, FUNCTIONS, ACTION)
    for switch in ("toggle", "toggle/global"):
        assert site.call("POST", f"{FUNCTIONS}/id/{name}/{switch}", {}, site.admin)[0] == 200
    return f"/api/chat/actions/{name}", {"model": "o.m", "messages": TURNS}


def with_new_id(template: str, source: str) -> Sample:
    return lambda site: (template, plugin(f"p{next(site.numbers)}", source))


def one_server() -> dict[str, Any]:
    """Return a tool server that brings its description with it."""
    described = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {}}
    return {"url": "http://127.0.0.1:9", "spec_type": "json", "spec": json.dumps(described)}


def list_samples() -> Iterator[tuple[Row, Sample]]:
    """Yield the rows that name nothing."""
    yield ("GET", f"{FOLDERS}/"), plain(f"{FOLDERS}/")
    yield ("GET", f"{CHATS}/favorites"), plain(f"{CHATS}/favorites")
    for path in ("/", "/list", "/search", "/pinned", "/archived", "/shared", "/all", "/all/archived"):
        yield ("GET", CHATS + path), plain(CHATS + path)
    for path in ("/all/db", "/all/tags"):
        yield ("GET", CHATS + path), plain(CHATS + path)
    for path in ("/archive/all", "/unarchive/all"):
        yield ("POST", CHATS + path), plain(CHATS + path, {})
    for path in ("", "/chat/{chat_id}"):
        yield ("GET", TASKS + path), plain((TASKS + path).replace("{chat_id}", "none"))
    for task in ("title", "tags", "follow_up"):
        path = f"/api/v1/tasks/{task}/completions"
        yield ("POST", path), plain(path, {"model": "o.m", "messages": TURNS})
    for path in (FUNCTIONS, TOOLS):
        for end in ("/", "/list", "/export"):
            yield ("GET", path + end), plain(path + end)


_OWN_VALVES = f"{FUNCTIONS}/id/{{id}}/valves/user"

LIVE_SAMPLES: dict[Row, Sample] = {
    **dict(list_samples()),
    ("DELETE", f"{CHATS}/"): plain(f"{CHATS}/"),
    ("POST", f"{FOLDERS}/"): lambda site: (f"{FOLDERS}/", {"name": f"f{next(site.numbers)}"}),
    ("POST", f"{CHATS}/tags"): plain(f"{CHATS}/tags", {"name": "x"}),
    ("POST", f"{CHATS}/new"): plain(f"{CHATS}/new", {"chat": {"title": "T"}}),
    ("POST", f"{CHATS}/import"): plain(f"{CHATS}/import", {"chats": [{"chat": {"title": "T"}}]}),
    ("GET", f"{CHATS}/share/{{share_id}}"): with_shared(f"{CHATS}/share/{{share_id}}"),
    ("POST", f"{CHATS}/{{id}}/clone/shared"): with_shared(f"{CHATS}/{{share_id}}/clone/shared", {}),
    ("GET", f"{CHATS}/list/user/{{user_id}}"): lambda site: (f"{CHATS}/list/user/{site.ids['user']}", None),
    ("POST", f"{TASKS}/stop/{{task_id}}"): plain(f"{TASKS}/stop/none", {}),
    ("GET", "/api/v1/tasks/config"): plain("/api/v1/tasks/config"),
    ("POST", f"{EVENTS}/ticket"): plain(f"{EVENTS}/ticket", {}),
    ("GET", f"{EVENTS}/calls"): plain(f"{EVENTS}/calls"),
    ("POST", "/api/chat/completed"): plain("/api/chat/completed", {"model": "o.m", "messages": TURNS}),
    ("POST", "/api/chat/actions/{action_id}"): with_action,
    ("POST", f"{FUNCTIONS}/create"): with_new_id(f"{FUNCTIONS}/create", FILTER),
    ("POST", f"{FUNCTIONS}/sync"): plain(f"{FUNCTIONS}/sync", {"functions": []}),
    ("GET", f"{FUNCTIONS}/id/{{id}}"): with_function(f"{FUNCTIONS}/id/{{id}}"),
    ("POST", f"{FUNCTIONS}/id/{{id}}/update"): with_function(
        f"{FUNCTIONS}/id/{{id}}/update", {"name": "New"}
    ),
    ("POST", f"{FUNCTIONS}/id/{{id}}/toggle"): with_function(f"{FUNCTIONS}/id/{{id}}/toggle", {}),
    ("POST", f"{FUNCTIONS}/id/{{id}}/toggle/global"): with_function(
        f"{FUNCTIONS}/id/{{id}}/toggle/global", {}
    ),
    ("DELETE", f"{FUNCTIONS}/id/{{id}}/delete"): with_function(f"{FUNCTIONS}/id/{{id}}/delete"),
    **{
        ("GET", f"{FUNCTIONS}/id/{{id}}{end}"): with_function(f"{FUNCTIONS}/id/{{id}}{end}")
        for end in ("/valves", "/valves/spec")
    },
    ("POST", f"{FUNCTIONS}/id/{{id}}/valves/update"): with_function(
        f"{FUNCTIONS}/id/{{id}}/valves/update", {}
    ),
    **{("GET", f"{_OWN_VALVES}{end}"): with_active_function(f"{_OWN_VALVES}{end}") for end in ("", "/spec")},
    ("POST", f"{_OWN_VALVES}/update"): with_active_function(f"{_OWN_VALVES}/update", {}),
    ("POST", f"{TOOLS}/create"): with_new_id(f"{TOOLS}/create", TOOL),
    ("GET", "/openai/config"): plain("/openai/config"),
    ("POST", "/openai/config/update"): plain("/openai/config/update", {"OPENAI_API_BASE_URLS": []}),
    ("POST", "/openai/verify"): lambda site: ("/openai/verify", {"url": f"{site.provider.url}/v1"}),
    ("GET", "/ollama/config"): plain("/ollama/config"),
    ("POST", "/ollama/config/update"): plain("/ollama/config/update", {"OLLAMA_BASE_URLS": []}),
    ("POST", "/ollama/verify"): lambda site: ("/ollama/verify", {"url": site.provider.url}),
    ("GET", "/api/v1/usage"): plain("/api/v1/usage?by=day,user,model"),
    ("GET", LIMITS): plain(LIMITS),
    ("PUT", LIMITS): plain(LIMITS, {"model": "unused", "parallel": 5}),
    ("GET", f"{LIMITS}/own"): plain(f"{LIMITS}/own"),
    ("GET", f"{LIMITS}/{{id}}"): with_limit,
    ("DELETE", f"{LIMITS}/{{id}}"): with_limit,
    ("GET", "/api/v1/configs/status"): plain("/api/v1/configs/status"),
    ("GET", "/api/v1/configs/scim"): plain("/api/v1/configs/scim"),
    ("GET", SERVERS): plain(SERVERS),
    ("POST", SERVERS): plain(SERVERS, {"TOOL_SERVER_CONNECTIONS": [one_server()]}),
    ("POST", f"{SERVERS}/verify"): plain(f"{SERVERS}/verify", one_server()),
}

_CHAT = f"{CHATS}/{{id}}"
_FOLDER = f"{FOLDERS}/{{id}}"
_TOOL = f"{TOOLS}/id/{{id}}"
_MESSAGE = f"{_CHAT}/messages/{{message_id}}"
_BELOW = f"{_CHAT}/branch/{{message_id}}"
_EVENT = f"{CHATS}/{{chat_id}}/messages/{{message_id}}/event"
_STATUS = {"type": "status", "data": {"description": "x"}}


def with_stream(template: str) -> OwnSample:
    """Name a resumable stream that the holder of a token asked for, which has ended."""

    def sample(site: Site, token: str) -> tuple[str, Any]:
        body = json.dumps({"model": "o.m", "messages": TURNS, "stream": True}).encode()
        headers = {"X-Gateway-Stream": "resumable", "Content-Type": "application/json"}
        reply = site.send("POST", "/v1/chat/completions", body, token, headers)
        assert reply.status == 200, reply
        return template.format(id=reply.headers["x-gateway-stream-id"]), None

    return sample


OWN_SAMPLES: dict[Row, OwnSample] = {
    **{
        (method, f"{base}/streams/{{id}}"): with_stream(f"{base}/streams/{{id}}")
        for method in ("GET", "DELETE")
        for base in BASES
    },
    **{
        ("GET", _CHAT + end): with_chat(_CHAT + end) for end in ("", "/pinned", "/export", "/tags", "/branch")
    },
    **{("POST", _CHAT + end): with_chat(_CHAT + end, {}) for end in ("/pin", "/archive", "/clone", "/share")},
    **{("DELETE", _CHAT + end): with_chat(_CHAT + end) for end in ("", "/share", "/tags/all")},
    ("POST", _CHAT): with_chat(_CHAT, {"chat": {"title": "New"}}),
    ("POST", f"{_CHAT}/branch"): with_chat(f"{_CHAT}/branch", {"chat": {"title": "New"}}),
    ("DELETE", _BELOW): with_chat(_BELOW),
    ("POST", f"{_CHAT}/folder"): with_chat(f"{_CHAT}/folder", {"folder_id": None}),
    ("GET", f"{CHATS}/folder/{{folder_id}}"): with_folder(f"{CHATS}/folder/{{folder_id}}"),
    ("GET", f"{CHATS}/folder/{{folder_id}}/list"): with_folder(f"{CHATS}/folder/{{folder_id}}/list"),
    ("GET", _FOLDER): with_folder(_FOLDER),
    ("POST", f"{_FOLDER}/update"): with_folder(f"{_FOLDER}/update", {"meta": {"icon": "star"}}),
    ("POST", f"{_FOLDER}/update/parent"): with_folder(f"{_FOLDER}/update/parent", {"parent_id": None}),
    ("POST", f"{_FOLDER}/update/expanded"): with_folder(f"{_FOLDER}/update/expanded", {"is_expanded": True}),
    ("DELETE", _FOLDER): with_folder(_FOLDER),
    ("POST", f"{_CHAT}/tags"): with_chat(f"{_CHAT}/tags", {"name": "x"}),
    ("DELETE", f"{_CHAT}/tags"): with_chat(f"{_CHAT}/tags", {"name": "x"}),
    ("POST", _MESSAGE): with_chat(_MESSAGE, {"content": "x"}),
    ("DELETE", _MESSAGE): with_chat(_MESSAGE),
    ("POST", _EVENT): with_chat(_EVENT, _STATUS),
    ("POST", f"{TASKS}/chat/{{chat_id}}/stop"): with_chat(f"{TASKS}/chat/{{chat_id}}/stop", {}),
    **{
        ("GET", _TOOL + end): with_tool(_TOOL + end)
        for end in ("", "/valves", "/valves/spec", "/valves/user", "/valves/user/spec")
    },
    **{
        ("POST", _TOOL + end): with_tool(_TOOL + end, {}) for end in ("/valves/update", "/valves/user/update")
    },
    ("POST", f"{_TOOL}/update"): with_tool(f"{_TOOL}/update", {"name": "New"}),
    ("POST", f"{_TOOL}/access/update"): with_tool(f"{_TOOL}/access/update", {"access_grants": []}),
    ("DELETE", f"{_TOOL}/delete"): with_tool(f"{_TOOL}/delete"),
}

LISTENING: set[Row] = {("GET", EVENTS), ("POST", f"{EVENTS}/calls/{{id}}")}
"""Rows of those who listen, which have tests of their own."""
