"""One request for each row that needs a credential, which succeeds for somebody who may make it."""

from collections.abc import Callable, Iterator
from typing import Any

from gatewayd.accounts.records import Role
from gatewayd.http.routes import BASES
from tests.fakes.daemons.role_site import AUTHS, GROUPS, MODELS, PASSWORD, PUBLIC_GRANT, USERS, Site
from tests.fakes.http.multipart_forms import field, form, part
from tests.fakes.providers.all_routes_upstream import UNKNOWN

Sample = Callable[[Site], tuple[str, Any]]
"""Makes the path and body of the request."""

Row = tuple[str, str]
"""Method and path of a row, with its parameters."""

KEPT = "o.other"
"""The model whose record comes and goes."""

TURNS = [{"role": "user", "content": "hi"}]
MESSAGES = ("/api/v1/messages", "/api/message", "/v1/messages", "/ollama/v1/messages")
PLACES = ("", "/{index}")
"""Behind a path of the runtimes' API: any runtime, or a certain one."""


def plain(path: str, body: Any = None) -> Sample:
    return lambda _: (path, body)


def with_user(template: str, body: Any = None) -> Sample:
    return lambda site: (template.format(id=site.add(Role.USER)[0]), body)


def with_group(template: str, body: Any = None) -> Sample:
    return lambda site: (template.format(id=site.add_group()), body)


def with_record(path: str, body: Any = None) -> Sample:
    def make(site: Site) -> tuple[str, Any]:
        site.permit(KEPT)
        return path, body

    return make


ASKED: dict[str, Any] = {
    "/chat/completions": {"messages": TURNS},
    "/embeddings": {"input": "hi"},
    "/completions": {"prompt": "hi"},
    "/responses": {"input": "hi"},
    "/responses/input_tokens": {"input": "hi"},
    "/responses/compact": {"input": "hi"},
    "/images/generations": {"prompt": "hi"},
    "/audio/speech": {"input": "hi", "voice": "alloy"},
    "/moderations": {"input": "hi"},
    "/rerank": {"query": "hi", "documents": ["hi"]},
}
"""What is asked for below each base address, but for the model."""

STORED_RESPONSES = {
    (method, f"{base}/responses{path}")
    for base in BASES
    for method, path in (
        *(("GET", ""), ("GET", "/{id}"), ("DELETE", "/{id}"), ("POST", "/{id}/cancel")),
        ("GET", "/{id}/input_items"),
    )
}
"""The rows of stored responses, of which each is its owner's alone, and that of a refused WebSocket."""

MEDIA_FORMS: dict[str, str] = {
    "/images/edits": "image",
    "/audio/transcriptions": "file",
    "/audio/translations": "file",
}
"""What is asked for by a form below each base address, with the name of its file."""


def media_form(path: str, model: str = "o.m") -> bytes:
    """Return the form for a path of `MEDIA_FORMS`."""
    file = part(f'name="{MEDIA_FORMS[path]}"; filename="a"', b"bytes")
    return form(field("model", model), field("prompt", "hi"), file)


RUNTIME_ASKED: dict[str, Any] = {
    "/api/chat": {"messages": TURNS},
    "/api/generate": {"prompt": "hi"},
    "/api/embed": {"input": ["hi"]},
    "/api/embeddings": {"prompt": "hi"},
    "/api/show": {},
}
"""What everybody may ask of a runtime's model."""

RUNTIME_ADMINISTRATION: dict[tuple[str, str], Any] = {
    ("POST", "/api/pull"): {"model": "l.new"},
    ("POST", "/api/push"): {"model": "l.m"},
    ("DELETE", "/api/push"): {"model": "l.m"},
    ("POST", "/api/create"): {"model": "l.new", "from": "l.m"},
    ("POST", "/api/copy"): {"source": "l.m", "destination": "l.copy"},
    ("DELETE", "/api/delete"): {"model": "l.other"},
    ("POST", "/api/unload"): {"model": "l.m"},
}
"""What administrators do to a runtime's models."""


def model_samples() -> Iterator[tuple[Row, Sample]]:
    """Yield the rows of every base address and of the messages dialect."""
    for base in BASES:
        yield ("GET", f"{base}/models"), plain(f"{base}/models")
        yield ("GET", f"{base}/models/{{id}}"), plain(f"{base}/models/o.m")
        for path, body in ASKED.items():
            yield ("POST", base + path), plain(base + path, {"model": "o.m", **body})
    for path in ("/chat/completions", "/embeddings"):
        base = "/openai/deployments/{id}"
        yield ("POST", base + path), plain(base.format(id="o.m") + path, ASKED[path])
    yield ("POST", "/v2/rerank"), plain("/v2/rerank", {"model": "o.m", **ASKED["/rerank"]})
    for path in MESSAGES:
        body = {"model": "a.m", "max_tokens": 5, "messages": TURNS}
        yield ("POST", path), plain(path, body)
        yield ("POST", f"{path}/count_tokens"), plain(f"{path}/count_tokens", body)


def runtime_samples() -> Iterator[tuple[Row, Sample]]:
    """Yield the rows of the runtimes' API."""
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        yield (method, "/ollama/api/{path}"), plain(f"/ollama{UNKNOWN}")
    for place in PLACES:
        real = place.format(index=0)
        for path in ("/api/tags", "/api/ps", "/api/version"):
            yield ("GET", f"/ollama{path}{place}"), plain(f"/ollama{path}{real}")
        for path, body in RUNTIME_ASKED.items():
            yield ("POST", f"/ollama{path}{place}"), plain(f"/ollama{path}{real}", {"model": "l.m", **body})
        for (method, path), body in RUNTIME_ADMINISTRATION.items():
            yield (method, f"/ollama{path}{place}"), plain(f"/ollama{path}{real}", body)


SAMPLES: dict[Row, Sample] = {
    **dict(model_samples()),
    **dict(runtime_samples()),
    ("GET", "/api/models/base"): plain("/api/models/base"),
    ("GET", f"{MODELS}/base"): plain(f"{MODELS}/base"),
    ("GET", f"{MODELS}/list"): plain(f"{MODELS}/list"),
    ("GET", f"{MODELS}/model"): with_record(f"{MODELS}/model?id={KEPT}"),
    ("POST", f"{MODELS}/create"): plain(f"{MODELS}/create", {"id": "extra"}),
    ("POST", f"{MODELS}/model/update"): plain(f"{MODELS}/model/update", {"id": "extra"}),
    ("POST", f"{MODELS}/model/access/update"): plain(
        f"{MODELS}/model/access/update", {"id": KEPT, "access_grants": PUBLIC_GRANT}
    ),
    ("POST", f"{MODELS}/model/toggle"): with_record(f"{MODELS}/model/toggle?id={KEPT}"),
    ("POST", f"{MODELS}/model/delete"): with_record(f"{MODELS}/model/delete", {"id": KEPT}),
    ("GET", f"{AUTHS}/"): plain(f"{AUTHS}/"),
    ("POST", f"{AUTHS}/add"): lambda site: (
        f"{AUTHS}/add",
        {"name": "N", "email": f"n{next(site.numbers)}@example.org", "password": PASSWORD},
    ),
    ("POST", f"{AUTHS}/update/profile"): plain(f"{AUTHS}/update/profile", {"name": "New"}),
    ("POST", f"{AUTHS}/update/timezone"): plain(f"{AUTHS}/update/timezone", {"timezone": "UTC"}),
    ("GET", f"{AUTHS}/identities"): plain(f"{AUTHS}/identities"),
    ("GET", f"{AUTHS}/confirm"): plain(f"{AUTHS}/confirm"),
    ("GET", f"{AUTHS}/sessions"): plain(f"{AUTHS}/sessions"),
    ("POST", f"{AUTHS}/sessions/end_others"): plain(f"{AUTHS}/sessions/end_others", {}),
    ("GET", f"{AUTHS}/invitations"): plain(f"{AUTHS}/invitations"),
    ("POST", f"{AUTHS}/invitations"): plain(f"{AUTHS}/invitations", {}),
    ("DELETE", f"{AUTHS}/invitations/{{id}}"): lambda site: (
        f"{AUTHS}/invitations/{site.call('POST', f'{AUTHS}/invitations', {}, site.admin)[1]['id']}",
        None,
    ),
    ("GET", f"{AUTHS}/api_keys"): plain(f"{AUTHS}/api_keys"),
    ("GET", f"{AUTHS}/admin/details"): plain(f"{AUTHS}/admin/details"),
    ("GET", f"{AUTHS}/admin/config"): plain(f"{AUTHS}/admin/config"),
    ("POST", f"{AUTHS}/admin/config"): plain(f"{AUTHS}/admin/config", {"SHOW_ADMIN_DETAILS": True}),
    ("GET", f"{AUTHS}/admin/config/origins"): plain(f"{AUTHS}/admin/config/origins"),
    ("POST", f"{AUTHS}/admin/config/reset"): plain(
        f"{AUTHS}/admin/config/reset", {"names": ["SHOW_ADMIN_DETAILS"]}
    ),
    ("GET", f"{USERS}/"): plain(f"{USERS}/"),
    ("GET", f"{USERS}/all"): plain(f"{USERS}/all"),
    ("GET", f"{USERS}/search"): plain(f"{USERS}/search"),
    ("GET", f"{USERS}/groups"): plain(f"{USERS}/groups"),
    ("GET", f"{USERS}/user/settings"): plain(f"{USERS}/user/settings"),
    ("POST", f"{USERS}/user/settings/update"): plain(f"{USERS}/user/settings/update", {"ui": {}}),
    ("GET", f"{USERS}/user/info"): plain(f"{USERS}/user/info"),
    ("POST", f"{USERS}/user/info/update"): plain(f"{USERS}/user/info/update", {"a": 1}),
    ("POST", f"{USERS}/update/role"): lambda site: (
        f"{USERS}/update/role",
        {"id": site.add(Role.USER)[0], "role": "pending"},
    ),
    ("GET", USERS + "/{id}"): with_user(USERS + "/{id}"),
    ("DELETE", USERS + "/{id}"): with_user(USERS + "/{id}"),
    ("GET", USERS + "/{id}/info"): with_user(USERS + "/{id}/info"),
    ("GET", USERS + "/{id}/active"): with_user(USERS + "/{id}/active"),
    ("GET", USERS + "/{id}/groups"): with_user(USERS + "/{id}/groups"),
    ("POST", USERS + "/{id}/update"): with_user(USERS + "/{id}/update", {"name": "New"}),
    ("GET", f"{USERS}/{{id}}/sessions"): lambda site: (f"{USERS}/{site.ids['user']}/sessions", None),
    ("DELETE", f"{USERS}/{{id}}/sessions"): lambda site: (
        f"{USERS}/{site.add(Role.USER)[0]}/sessions",
        None,
    ),
    ("GET", f"{USERS}/{{id}}/api_keys"): with_user(f"{USERS}/{{id}}/api_keys"),
    ("GET", f"{USERS}/permissions"): plain(f"{USERS}/permissions"),
    ("GET", f"{USERS}/default/permissions"): plain(f"{USERS}/default/permissions"),
    ("POST", f"{USERS}/default/permissions"): plain(
        f"{USERS}/default/permissions",
        {"workspace": {"knowledge": True, "tools": True, "tools_export": True}},
    ),
    ("GET", f"{USERS}/default/permissions/defaults"): plain(f"{USERS}/default/permissions/defaults"),
    ("GET", f"{GROUPS}/"): plain(f"{GROUPS}/"),
    ("POST", f"{GROUPS}/create"): lambda site: (
        f"{GROUPS}/create",
        {"name": f"h{next(site.numbers)}", "description": ""},
    ),
    ("GET", GROUPS + "/id/{id}"): with_group(GROUPS + "/id/{id}"),
    ("GET", GROUPS + "/id/{id}/info"): lambda site: (
        f"{GROUPS}/id/{site.add_group(site.ids['user'])}/info",
        None,
    ),
    ("GET", GROUPS + "/id/{id}/export"): with_group(GROUPS + "/id/{id}/export"),
    ("GET", GROUPS + "/id/{id}/members"): with_group(GROUPS + "/id/{id}/members"),
    ("POST", GROUPS + "/id/{id}/users"): with_group(GROUPS + "/id/{id}/users", {}),
    ("POST", GROUPS + "/id/{id}/update"): with_group(GROUPS + "/id/{id}/update", {"description": "d"}),
    ("POST", GROUPS + "/id/{id}/users/add"): with_group(GROUPS + "/id/{id}/users/add", {"user_ids": []}),
    ("POST", GROUPS + "/id/{id}/users/remove"): with_group(
        GROUPS + "/id/{id}/users/remove", {"user_ids": []}
    ),
    ("DELETE", GROUPS + "/id/{id}/delete"): with_group(GROUPS + "/id/{id}/delete"),
}
