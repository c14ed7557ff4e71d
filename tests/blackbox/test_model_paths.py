"""Every path that reaches a model: rights, the model's record, filters and identity hold on each of them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.accounts.records import Role
from gatewayd.http.routes import BASES
from tests.fakes.daemons.role_site import AUTHS, MODELS, PUBLIC_GRANT, Site, opened_roles
from tests.fakes.http.raw_http import Reply
from tests.fakes.http.samples import ASKED, MEDIA_FORMS, MESSAGES, RUNTIME_ASKED, Row
from tests.fakes.http.samples_models import CONTROL_PATHS, MODEL_PATHS, Decision
from tests.fakes.providers.upstream import Reply as FakeReply
from tests.fakes.providers.upstream import json_reply, sse

SECRET = "canary-of-the-record"
ADDRESS = "ann.canary@example.org"
FUNCTIONS = "/api/v1/functions/id"
HEADERS = {"x-openwebui-user-id", "x-openwebui-user-email", "x-openwebui-user-name", "x-openwebui-user-role"}
COUNTED = {"admins_exempt": False, "user_model_per_hour": 1, "user_per_minute": 0}
TASK = {"messages": [{"role": "user", "content": "hi"}]}

BODIES: dict[str, dict[str, Any]] = {
    **{f"{BASES[0]}{path}": body for path, body in ASKED.items()},
    MESSAGES[0]: {"max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]},
    **{f"/ollama{path}": body for path, body in RUNTIME_ASKED.items() if path != "/api/show"},
    **{f"/ollama{path}/{{index}}": body for path, body in RUNTIME_ASKED.items() if path != "/api/show"},
    **{f"/api/v1/tasks/{task}/completions": TASK for task in ("title", "tags", "follow_up")},
}
"""The body of each path without its model; of aliases, which share a handler, the first."""

PATHS = {path: MODEL_PATHS["POST", path] for path in BODIES}
EACH = pytest.mark.parametrize("path", BODIES)
ANYWHERE = pytest.mark.parametrize("path", [path for path in BODIES if "{index}" not in path])
"""Without the paths of one runtime: a model on top of another one is no runtime's."""

WHOLE_OR_STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    settings = {"ENABLE_FORWARD_USER_INFO_HEADERS": "true"}
    with opened_roles(tmp_path_factory.mktemp("s"), **settings) as opened:
        for model_id in ("o.other", "l.other"):
            keep(opened, f"preset-{model_id[0]}", model_id, {"system": f"{SECRET}.", "temperature": 0.125})
            keep(opened, f"tuned-{model_id[0]}", model_id, {"temperature": 0.125})
            keep(opened, f"told-{model_id[0]}", model_id, {}, knowledge=[{"type": "file", "id": "gone"}])
        yield opened


def keep(site: Site, model_id: str, base: str | None, params: dict[str, Any], **meta: Any) -> None:
    form = {
        "id": model_id,
        "name": model_id,
        "base_model_id": base,
        "params": params,
        "meta": meta,
        "access_grants": PUBLIC_GRANT,
    }
    status, answer = site.call("POST", f"{MODELS}/create", form, site.admin)
    assert status == 200, answer


@pytest.fixture
def switched(site: Site) -> Iterator[Any]:
    """Return what switches a built-in filter on for all models; afterwards it is off."""
    on: list[str] = []

    def switch(name: str, **valves: Any) -> None:
        if valves:
            status, answer = site.call("POST", f"{FUNCTIONS}/{name}/valves/update", valves, site.admin)
            assert status == 200, answer
        for what in ("toggle", "toggle/global"):
            status, answer = site.call("POST", f"{FUNCTIONS}/{name}/{what}", {}, site.admin)
            assert status == 200, answer
        on.append(name)

    yield switch
    for name in on:
        for what in ("toggle", "toggle/global"):
            site.call("POST", f"{FUNCTIONS}/{name}/{what}", {}, site.admin)


def kind_of(path: str) -> str:
    return "l" if path.startswith("/ollama/api") else "o"


def is_generating(path: str) -> bool:
    """Tell whether the parameters of a record for the generation of text apply to a path."""
    return not any(word in path for word in ("embed", "images", "audio", "moderations", "rerank"))


def ask(site: Site, path: str, model: str, token: str = "", **fields: Any) -> Reply:
    """Ask with an address in the text, and forget what the provider was asked before."""
    site.provider.script()
    body = json.dumps({"model": model, **BODIES[path], **fields}).replace('"hi"', f'"hi {ADDRESS}"')
    return site.send("POST", path.replace("{index}", "0"), body.encode(), token or site.user)


def ask_as_scripted(site: Site, path: str, token: str, **fields: Any) -> Reply:
    body = json.dumps({"model": "o.m", **BODIES[path], **fields})
    return site.send("POST", path, body.encode(), token)


def asked(site: Site) -> list[dict[str, Any]]:
    return [request.json for request in site.provider.fake.requests if request.method == "POST"]


def is_refused(reply: Reply, words: str) -> bool:
    return reply.status == 400 and words in reply.body.decode()


def test_every_path_is_asked_here_or_shares_its_handler() -> None:
    asked_here: set[Row] = {("POST", path) for path in BODIES}
    shared = {
        row
        for row in MODEL_PATHS.keys() - asked_here
        if not MODEL_PATHS[row].is_administration and MODEL_PATHS[row].filters is not Decision.NONE
    }
    for _, path in shared:
        ends = (*ASKED, *MEDIA_FORMS)
        is_shared = any(path == base + end for base in (*BASES, "/v2") for end in ends)
        assert is_shared or path in MESSAGES or path.startswith("/openai/deployments/")


def key_of_user(site: Site) -> str:
    site.configure(ENABLE_API_KEYS=True)
    site.add_group(site.ids["user"], features={"api_keys": True})
    status, made = site.call("POST", f"{AUTHS}/api_key", {"name": "k"}, site.user)
    assert status == 200, made
    return str(made["api_key"])


def test_no_list_tells_what_a_model_stands_on_or_how_it_is_prompted(site: Site) -> None:
    rows = site.call("GET", "/openapi.json")[1]["paths"]
    listing = [
        path for path, row in rows.items() if {"models", "runtime"} & set(row.get("get", {}).get("tags", ()))
    ]
    places = [
        place.format(id=model, index=0, path="x") for place in listing for model in ("preset-o", "preset-l")
    ]
    asked_here = [("GET", place, None) for place in dict.fromkeys(places)]
    asked_here.append(("POST", "/ollama/api/show", b'{"model": "preset-l"}'))
    seen = set()
    for token in (site.user, key_of_user(site)):
        for method, path, body in asked_here:
            reply = site.send(method, path, body, token)
            told = reply.body.decode()
            assert reply.status in {200, 403, 404}, (path, reply)
            assert SECRET not in told, path
            assert "other" not in told, path
            if "preset-" in told and reply.status == 200:
                seen.add(path)
    assert {f"{base}/models" for base in BASES} | {"/ollama/api/tags"} < seen


@EACH
def test_base_is_unknown_to_whom_the_record_is_for(site: Site, path: str) -> None:
    reply = ask(site, path, f"{kind_of(path)}.other")
    assert reply.status == 404, reply
    assert asked(site) == []


@WHOLE_OR_STREAMED
@ANYWHERE
def test_prompt_and_parameters_of_a_record_reach_the_model_and_nobody_else(
    site: Site, path: str, stream: bool
) -> None:
    reply = ask(
        site, path, f"preset-{kind_of(path)}", stream=stream, temperature=1, options={"temperature": 1}
    )
    decided = PATHS[path].prompt
    if decided is Decision.REFUSES:
        assert is_refused(reply, "system prompt"), reply
        assert asked(site) == []
        return
    assert decided is Decision.APPLIES
    assert reply.status == 200, reply
    (sent,) = asked(site)
    assert SECRET in json.dumps(sent)
    assert SECRET.encode() not in reply.body
    assert sent.get("temperature", sent.get("options", {}).get("temperature")) == 0.125


@ANYWHERE
def test_an_answer_names_the_model_as_it_was_asked_for_or_as_its_source_does(site: Site, path: str) -> None:
    model = f"tuned-{kind_of(path)}"
    reply = ask(site, path, model, stream=False)
    assert reply.status == 200, reply
    own = "other" if path in {"/api/chat/completions", "/api/responses"} else model
    assert reply.json.get("model", own) == own


@ANYWHERE
def test_record_without_a_prompt_holds_everywhere(site: Site, path: str) -> None:
    reply = ask(site, path, f"tuned-{kind_of(path)}", stream=False, temperature=1)
    assert reply.status == 200, reply
    (sent,) = asked(site)
    if is_generating(path):
        assert sent.get("temperature", sent.get("options", {}).get("temperature")) == 0.125
    reply = ask(site, path, f"told-{kind_of(path)}", stream=False)
    is_told = PATHS[path].documents is Decision.REFUSES
    assert is_refused(reply, "documents") if is_told else reply.status == 200, reply


@EACH
def test_record_of_a_listed_model_holds_too(site: Site, path: str) -> None:
    model = f"{kind_of(path)}.m"
    keep(site, model, None, {"system": f"{SECRET}."})
    try:
        reply = ask(site, path, model, stream=False)
        if PATHS[path].prompt is Decision.REFUSES:
            assert is_refused(reply, "system prompt"), reply
        else:
            assert SECRET in json.dumps(asked(site)[0])
    finally:
        keep(site, model, None, {})


@WHOLE_OR_STREAMED
@EACH
def test_filter_hides_what_the_model_is_not_to_know(
    site: Site, switched: Any, path: str, stream: bool
) -> None:
    switched("redact")
    reply = ask(site, path, f"{kind_of(path)}.m", stream=stream)
    assert reply.status == 200, reply
    (sent,) = asked(site)
    assert "[EMAIL_1]" in json.dumps(sent)
    assert ADDRESS not in json.dumps(sent)


def test_filter_reads_a_streamed_response_that_comes_in_no_pieces(site: Site, switched: Any) -> None:
    switched("redact")
    part = {"type": "output_text", "text": "ask bob.canary@example.org", "annotations": []}
    item = {"type": "message", "id": "i", "role": "assistant", "content": [part]}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    over = {"type": "response.completed", "response": {"id": "r", "output": [item]}}
    site.provider.script(FakeReply(steps=[sse(done), sse(over)]))
    reply = ask_as_scripted(site, "/api/responses", site.user, stream=True)
    assert reply.status == 200, reply
    assert b"bob.canary" not in reply.body
    assert reply.body.count(b"[EMAIL_1]") == 2


def test_response_is_continued_by_nobody_else(site: Site) -> None:
    path, other = "/api/responses", site.add(Role.USER)[1]
    for stream in (False, True):
        answer = {"id": f"resp-{stream}", "object": "response", "output": []}
        over = FakeReply(steps=[sse({"type": "response.completed", "response": answer})])
        site.provider.script(over if stream else json_reply(answer))
        assert ask_as_scripted(site, path, site.user, stream=stream).status == 200
        named = {"previous_response_id": f"resp-{stream}"}
        reply = ask(site, path, "o.m", other, **named)
        assert is_refused(reply, "previous_response_not_found"), reply
        assert asked(site) == []
        assert ask(site, path, "o.m", **named).status == 200
        assert asked(site)[0]["previous_response_id"] == named["previous_response_id"]


@EACH
def test_filter_refuses(site: Site, switched: Any, path: str) -> None:
    switched("rate_limit", **COUNTED)
    model, token = f"{kind_of(path)}.m", site.add(Role.USER)[1]
    assert ask(site, path, model, token, stream=False).status == 200
    reply = ask(site, path, model, token, stream=False)
    assert reply.status == 429, reply
    assert int(reply.headers["retry-after"]) > 0
    assert asked(site) == []


@EACH
def test_provider_is_told_who_asks(site: Site, path: str) -> None:
    assert ask(site, path, f"{kind_of(path)}.m", stream=False).status == 200
    headers = {name.lower(): value for name, value in site.provider.last().headers.items()}
    assert headers.keys() >= HEADERS
    assert headers["x-openwebui-user-id"] == site.ids["user"]


@EACH
def test_a_name_without_a_tag_means_its_tag_latest(site: Site, path: str) -> None:
    kind = kind_of(path)
    if "tagged:latest" not in site.provider.fake.models:
        site.provider.fake.models.append("tagged:latest")
        assert site.call("GET", "/api/models?refresh=true", token=site.admin)[0] == 200
    keep(site, f"{kind}.tagged", None, {"temperature": 0.125})
    for name in ("tagged", "tagged:latest"):
        assert ask(site, path, f"{kind}.{name}", stream=False).status == 200
        (sent,) = asked(site)
        assert sent["model"] == "tagged:latest"
        if is_generating(path):
            assert sent.get("temperature", sent.get("options", {}).get("temperature")) == 0.125


def test_control_socket_asks_in_the_same_way(site: Site, switched: Any) -> None:
    assert {("POST", "/v1/chat")} == CONTROL_PATHS.keys()
    switched("redact")
    site.provider.script()
    done = site.daemon.run_ctl("chat", "preset-o", f"hi {ADDRESS}")
    assert done.returncode == 0, done.stderr
    (sent,) = asked(site)
    assert SECRET in json.dumps(sent)
    assert ADDRESS not in json.dumps(sent)
