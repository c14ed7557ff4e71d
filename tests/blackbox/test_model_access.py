"""Which models a user may use: a foreign model is as unknown as none, on every route that names one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.routes import BASES
from tests.fakes.daemons.role_site import AUTHS, MODELS, PERMITTED, Site, opened_roles
from tests.fakes.http.raw_http import Reply
from tests.fakes.http.samples import ASKED, MESSAGES, PLACES, RUNTIME_ASKED, TURNS


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s")) as opened:
        yield opened


# Path -> body of every POST that names a model, without the model.
NAMING: dict[str, dict[str, Any]] = {
    **{base + path: body for base in BASES for path, body in ASKED.items()},
    **{path: {"max_tokens": 5, "messages": TURNS} for path in MESSAGES},
    **{
        f"/ollama{path}{place.format(index=0)}": body
        for path, body in RUNTIME_ASKED.items()
        for place in PLACES
    },
}
FOREIGN = ("o.other", "a.other", "l.other")


def asked(site: Site, path: str, model: str, token: str, **fields: Any) -> Reply:
    body = json.dumps({"model": model, **NAMING[path.rstrip("/")], **fields}).encode()
    return site.send("POST", path, body, token)


def shape(path: str, reply: Reply, model: str) -> dict[str, Any]:
    """Check the body of a refusal in its dialect and return it without the model's id."""
    body = json.loads(reply.body.replace(model.encode(), b"MODEL"))
    if path in MESSAGES:
        assert body.keys() == {"type", "error", "detail"}
        assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")
        assert body["error"]["message"] == body["detail"]
    elif path.startswith("/ollama/api"):
        assert body.keys() == {"error", "detail"}
        assert body["error"] == body["detail"]
    else:
        assert body.keys() == {"error", "detail"}
        assert (body["error"]["param"], body["error"]["code"]) == ("model", "model_not_found")
    return dict(body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", NAMING)
def test_a_foreign_model_is_as_unknown_as_none(site: Site, path: str, stream: bool) -> None:
    site.provider.script()
    unknown = asked(site, path, "o.none!", site.user, stream=stream)
    assert unknown.status == 404
    for model in FOREIGN:
        foreign = asked(site, path, model, site.user, stream=stream)
        assert foreign.status == 404
        assert shape(path, foreign, model) == shape(path, unknown, "o.none!")
        assert foreign.headers.keys() == unknown.headers.keys()
    assert [request for request in site.provider.fake.requests if request.method == "POST"] == []


@pytest.mark.parametrize("path", NAMING)
def test_a_permitted_model_answers(site: Site, path: str) -> None:
    model = "l.m" if "/0" in path else "o.m"
    if "/0" not in path and path.startswith("/ollama/api"):
        model = "l.m"
    reply = asked(site, path, model, site.user, stream=False)
    assert reply.status == 200, reply
    assert asked(site, path, model.replace(".m", ".other"), site.admin, stream=False).status == 200


@pytest.mark.parametrize("base", BASES)
def test_lists_hold_what_the_viewer_may_use(site: Site, base: str) -> None:
    status, listed = site.call("GET", f"{base}/models", None, site.user)
    assert status == 200
    assert {model["id"] for model in listed["data"]} == set(PERMITTED)
    everything = site.call("GET", f"{base}/models", None, site.admin)[1]
    assert {model["id"] for model in everything["data"]} == {*PERMITTED, *FOREIGN}
    for model in FOREIGN:
        status, refused = site.call("GET", f"{base}/models/{model}", None, site.user)
        none = site.call("GET", f"{base}/models/o.none!", None, site.user)[1]
        assert status == 404
        assert json.dumps(refused).replace(model, "o.none!") == json.dumps(none)


def test_the_runtimes_lists_hold_what_the_viewer_may_use(site: Site) -> None:
    for path in ("/ollama/api/tags", "/ollama/api/tags/0", "/ollama/api/ps", "/ollama/api/ps/0"):
        listed = site.call("GET", path, None, site.user)[1]["models"]
        assert [model["model"] for model in listed] == ["l.m"], path
        listed = site.call("GET", path, None, site.admin)[1]["models"]
        assert {model["model"] for model in listed} == {"l.m", "l.other"}, path


# A runtime reads its fields whatever their case; what it is asked for must be what was checked.
SMUGGLED = [
    b'{"model":"l.m","Model":"other",REST}',
    b'{"Model":"other","model":"l.m",REST}',
    b'{"model":"l.m","MODEL":"l.other","mODEL":"other",REST}',
    b'{"model":"l.m","name":"other",REST}',
    b'{"model":"l.m","Name":"other",REST}',
    b'{"name":"l.m","Model":"other",REST}',
    '{"model":"l.m","mode\u006c\u0307":"other",REST}'.encode(),
    b'{"model":"l.m","\\u006dodel":"l.m",REST}',
    '{"model":"l.m","\uff4dodel":"other",REST}'.encode(),
]


@pytest.mark.parametrize("body", SMUGGLED, ids=range(len(SMUGGLED)))
@pytest.mark.parametrize("path", [path for path in NAMING if path.startswith("/ollama/api")])
def test_no_spelling_of_a_field_names_another_model_to_the_runtime(
    site: Site, path: str, body: bytes
) -> None:
    site.provider.script()
    rest = json.dumps({**NAMING[path], "stream": False})[1:-1].encode()
    reply = site.send("POST", path, body.replace(b"REST", rest), site.user)
    assert reply.status == 200, reply
    (got,) = [request for request in site.provider.fake.requests if request.method == "POST"]
    named = {key: value for key, value in got.json.items() if key.lower() in {"model", "name"}}
    assert set(named.values()) == {"m"}


DOUBLED = [
    (b'{"model":"o.m","model":"o.other",REST}', 404),
    (b'{"model":"o.other","model":"o.m",REST}', 200),
]


@pytest.mark.parametrize(("body", "status"), DOUBLED, ids=["foreign last", "foreign first"])
@pytest.mark.parametrize("path", NAMING)
def test_of_a_doubled_model_the_last_one_is_checked_and_asked_for(
    site: Site, path: str, body: bytes, status: int
) -> None:
    """The body goes on as it was read, with one model in it."""
    site.provider.script()
    rest = json.dumps({**NAMING[path], "stream": False})[1:-1].encode()
    sent = body.replace(b"REST", rest)
    if path.startswith("/ollama/api"):
        sent = sent.replace(b"o.", b"l.")
    assert site.send("POST", path, sent, site.user).status == status
    for request in site.provider.fake.requests:
        if request.method == "POST":
            assert request.json["model"] == "m"
            assert request.body.count(b'"model"') == 1


def make_key(site: Site) -> str:
    user_id, session = site.add(Role.USER)
    site.add_group(user_id, features={"api_keys": True})
    status, made = site.call("POST", f"{AUTHS}/api_key", {"name": "k"}, session)
    assert status == 200, made
    key: str = made["api_key"]
    return key


def test_endpoint_restrictions_of_keys_hold_on_every_path(site: Site) -> None:
    site.configure(ENABLE_API_KEYS=True)
    key = make_key(site)
    allowed = "/v1/messages,/openai/models/,POST /ollama/api/chat,/ollama/v1/chat"
    site.configure(ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=True, API_KEYS_ALLOWED_ENDPOINTS=allowed)
    reachable = {"/v1/messages", "/ollama/v1/chat/completions", "/ollama/api/chat", "/ollama/api/chat/0"}
    for path in NAMING:
        model = "l.m" if path.startswith("/ollama/api") else "o.m"
        reply = asked(site, path, model, key, stream=False)
        assert reply.status == (200 if path in reachable else 403), path
        assert asked(site, f"{path}/", model, key, stream=False).status == reply.status, path
        if reply.status == 403:
            assert reply.json["detail"]
            assert "error" in reply.json
    for base in BASES:
        expected = 200 if base == "/openai" else 403
        assert site.call("GET", f"{base}/models", None, key)[0] == expected
        assert site.call("GET", f"{base}/models/o.m", None, key)[0] == 403
    counted = json.dumps({"model": "o.m", **NAMING["/v1/messages"]}).encode()
    assert site.send("POST", "/v1/messages/count_tokens", counted, key).status == 200
    assert site.send("POST", "/api/v1/messages/count_tokens", counted, key).status == 403
    site.configure(ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=False, ENABLE_API_KEYS=False)


def test_a_switched_off_model_is_gone_for_users_at_once(site: Site) -> None:
    site.permit("o.m")
    try:
        assert site.call("POST", f"{MODELS}/model/toggle?id=o.m", None, site.admin)[0] == 200
        for path in (path for path in NAMING if not path.startswith("/ollama/api")):
            assert asked(site, path, "o.m", site.user).status == 404
    finally:
        site.permit("o.m")
