"""Batches of requests from official clients to the results, over cancellations, restarts and lost rights."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from gatewayd.accounts.records import Role
from tests.fakes.daemons.bad_input_site import PROVIDERS
from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.role_site import AUTHS, PASSWORD, USERS, Site, opened_roles
from tests.fakes.http.multipart_forms import FORM
from tests.fakes.http.samples_batches import BATCH_ROWS, ID_ROWS, LIST_ROWS
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply, openai_completion

CHATS: Any = "/v1/chat/completions"
TURNS: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_roles(tmp_path_factory.mktemp("s"), BATCH_PARALLEL_REQUESTS="2") as opened:
        yield opened


OPENED: list[openai.OpenAI | anthropic.Anthropic] = []


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close the clients of a test behind it."""
    yield
    while OPENED:
        OPENED.pop().close()


def client_of(site: Site, token: str) -> openai.OpenAI:
    client = openai.OpenAI(api_key=token, base_url=f"{site.daemon.base_url}/v1", max_retries=0)
    OPENED.append(client)
    return client


def lines_of(count: int, model: str = "o.m", **changes: Any) -> bytes:
    body = {"model": model, "messages": TURNS}
    lines = [
        {"custom_id": f"c{number}", "method": "POST", "url": CHATS, "body": body, **changes}
        for number in range(count)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def begin(client: openai.OpenAI, lines: bytes, endpoint: Any = CHATS) -> Any:
    file = client.files.create(file=("a.jsonl", lines), purpose="batch")
    return client.batches.create(
        input_file_id=file.id, endpoint=endpoint, completion_window="24h", metadata={"job": "nightly"}
    )


def ended(client: openai.OpenAI, batch_id: str) -> Any:
    deadline = time.monotonic() + 20
    while (batch := client.batches.retrieve(batch_id)).status in {
        *("validating", "in_progress", "finalizing", "cancelling"),
    }:
        assert time.monotonic() < deadline, batch
        time.sleep(0.02)
    return batch


def results(client: openai.OpenAI, file_id: str | None) -> dict[str, Any]:
    assert file_id
    found = [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
    assert len({line["custom_id"] for line in found}) == len(found)
    return {line["custom_id"]: line for line in found}


def test_an_upload_with_a_key_is_stored_once(site: Site) -> None:
    client = client_of(site, site.add(Role.USER)[1])

    def upload(content: bytes, key: str = "k", **wishes: Any) -> str:
        head = {"Idempotency-Key": key}
        return str(
            client.files.create(file=("a.jsonl", content), purpose="batch", extra_headers=head, **wishes).id
        )

    made = upload(b"{}")
    assert upload(b"{}") == made
    for content, wishes in (
        (b"[]", {}),
        (b"{}", {"expires_after": {"anchor": "created_at", "seconds": 3600}}),
    ):
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            upload(content, **wishes)
        assert caught.value.code == "idempotency_key_reused"
    other = upload(b"{}", "k2")
    assert {file.id for file in client.files.list()} == {made, other}


def test_the_official_client_of_openai_runs_a_batch(site: Site) -> None:
    site.provider.script()
    client = client_of(site, site.user)
    lines = lines_of(3) + lines_of(1, "o.other", custom_id="foreign")
    batch = begin(client, lines)
    assert (batch.status, batch.object, batch.metadata) == ("validating", "batch", {"job": "nightly"})
    batch = ended(client, batch.id)
    assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == ("completed", 3, 1)
    found = results(client, batch.output_file_id)
    assert found.keys() == {"c0", "c1", "c2"}
    assert found["c1"]["response"]["status_code"] == 200
    assert found["c1"]["response"]["body"]["choices"][0]["message"]["content"] == "Hello from m"
    # A model of another user is as unknown as none.
    (failed,) = results(client, batch.error_file_id).values()
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("foreign", 404)
    assert failed["response"]["body"]["error"]["code"] == "model_not_found"
    assert next(iter(client.batches.list(limit=1))).id == batch.id
    files = list(client.files.list())
    assert {file.purpose for file in files} == {"batch", "batch_output"}
    stranger = client_of(site, site.add(Role.USER)[1])
    for call in (
        lambda: stranger.batches.retrieve(batch.id),
        lambda: stranger.batches.cancel(batch.id),
        lambda: stranger.files.retrieve(batch.input_file_id),
        lambda: stranger.files.content(batch.output_file_id),
        lambda: stranger.files.delete(batch.input_file_id),
        lambda: begin_with(stranger, batch.input_file_id),
    ):
        with pytest.raises(openai.NotFoundError):
            call()
    assert list(stranger.batches.list()) == []
    assert client.files.delete(batch.input_file_id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(batch.input_file_id)
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)


def begin_with(client: openai.OpenAI, file_id: str) -> Any:
    return client.batches.create(input_file_id=file_id, endpoint=CHATS, completion_window="24h")


@pytest.mark.parametrize(
    ("endpoint", "body"),
    [
        ("/v1/embeddings", {"input": ["a"], "encoding_format": "base64"}),
        ("/v1/completions", {"prompt": "hi"}),
        ("/v1/responses", {"input": "hi"}),
        ("/v1/responses", {"input": "hi", "model": "a.m"}),
        ("/v1/moderations", {"input": "hi"}),
        ("/v1/images/generations", {"prompt": "hi"}),
    ],
)
def test_every_endpoint_runs(site: Site, endpoint: str, body: dict[str, Any]) -> None:
    site.provider.script()
    client = client_of(site, site.user)
    batch = ended(
        client, begin(client, lines_of(1, url=endpoint, body={"model": "o.m", **body}), endpoint).id
    )
    assert batch.status == "completed"
    (line,) = results(client, batch.output_file_id).values()
    assert line["response"]["status_code"] == 200
    assert isinstance(line["response"]["body"], dict)


@pytest.mark.parametrize(
    ("lines", "code", "line"),
    [
        (b"\n \n", "empty_file", None),
        (lines_of(1) + b"{not json\n", "invalid_json_line", 2),
        (lines_of(1) + b"[1]\n", "invalid_json_line", 2),
        (lines_of(2, custom_id="c"), "duplicate_custom_id", 2),
        (lines_of(1, custom_id=5), "missing_required_parameter", 1),
        (lines_of(1, method="GET"), "invalid_method", 1),
        (lines_of(1, url="/v1/embeddings"), "mismatched_url", 1),
        (lines_of(1, body=[]), "invalid_body", 1),
        (lines_of(1, body={"model": "o.m", "stream": True}), "invalid_stream", 1),
    ],
)
def test_a_bad_line_fails_the_batch(site: Site, lines: bytes, code: str, line: int | None) -> None:
    site.provider.script()
    client = client_of(site, site.user)
    batch = ended(client, begin(client, lines).id)
    assert batch.status == "failed"
    (fault,) = batch.errors.data
    assert (fault.code, fault.line) == (code, line)
    assert [each for each in site.provider.fake.requests if each.method == "POST"] == []


def test_what_cannot_be_a_batch_is_refused(site: Site) -> None:
    client = client_of(site, site.user)
    file = client.files.create(file=("a.jsonl", lines_of(1)), purpose="batch")
    refused: list[tuple[dict[str, Any], str]] = [
        ({"endpoint": "/v1/videos"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"metadata": {"a": "b" * 513}}, "metadata"),
    ]
    asked = {"input_file_id": file.id, "endpoint": CHATS, "completion_window": "24h"}
    for changes, param in refused:
        with pytest.raises(openai.BadRequestError) as caught:
            client.batches.create(**{**asked, **changes})
        assert caught.value.param == param
    with pytest.raises(openai.BadRequestError) as caught:
        client.files.create(file=("a.jsonl", b"a"), purpose="fine-tune")
    assert caught.value.code == "purpose_not_supported"


def test_a_cancelled_batch_keeps_what_is_finished(site: Site) -> None:
    done = json_reply(openai_completion("one"))
    waiting = Reply(steps=[b" ", SILENCE, b"{}"], content_type="application/json")
    site.provider.script(done, waiting, waiting)
    client = client_of(site, site.user)
    batch = begin(client, lines_of(6))
    site.provider.wait_silent()
    deadline = time.monotonic() + 10
    while client.batches.retrieve(batch.id).request_counts.completed < 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    with pytest.raises(openai.ConflictError):
        client.files.delete(batch.input_file_id)
    assert client.batches.cancel(batch.id).status == "cancelling"
    site.provider.release()
    batch = ended(client, batch.id)
    assert (batch.status, batch.request_counts.completed) == ("cancelled", 1)
    assert len(results(client, batch.output_file_id)) == 1


def test_a_user_who_is_deactivated_runs_no_further_line(site: Site) -> None:
    waiting = Reply(steps=[b" ", SILENCE, b'{"choices": []}'], content_type="application/json")
    site.provider.script(waiting, waiting)
    user, token = site.add(Role.USER)
    client = client_of(site, token)
    batch = begin(client, lines_of(5))
    site.provider.wait_silent()
    change = {"id": user, "role": "pending"}
    status, answer = site.call("POST", f"{USERS}/update/role", change, site.admin)
    assert status == 200, answer
    site.provider.release()
    deadline = time.monotonic() + 10
    while (shown := shown_batch(site, batch.id))["status"] != "completed" and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (shown["completed"], shown["failed"]) == (2, 3)
    assert len([each for each in site.provider.fake.requests if each.method == "POST"]) == 2


def shown_batch(site: Site, batch_id: str) -> dict[str, Any]:
    done = site.daemon.run_ctl("batch", "show", batch_id, "-o", "json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_key_is_held_to_its_endpoints_and_its_life(site: Site) -> None:
    site.provider.script()
    site.configure(ENABLE_API_KEYS=True)
    user, token = site.add(Role.USER)
    site.add_group(user, features={"api_keys": True})
    key = site.call("POST", f"{AUTHS}/api_key", {"name": "k"}, token)[1]["api_key"]
    client = client_of(site, key)
    allowed = "/v1/files,/v1/batches"
    site.configure(ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=True, API_KEYS_ALLOWED_ENDPOINTS=allowed)
    try:
        with pytest.raises(openai.PermissionDeniedError, match="/v1/chat/completions"):
            begin(client, lines_of(1))
        site.configure(API_KEYS_ALLOWED_ENDPOINTS=f"{allowed},{CHATS}")
        batch = ended(client, begin(client, lines_of(1)).id)
        assert batch.request_counts.completed == 1
        waiting = Reply(steps=[b" ", SILENCE, b'{"choices": []}'], content_type="application/json")
        site.provider.script(waiting, waiting)
        batch = begin(client, lines_of(3))
        site.provider.wait_silent()
        assert site.call("DELETE", f"{AUTHS}/api_key", token=token)[0] == 200
        site.provider.release()
        batch = ended(client_of(site, token), batch.id)
        assert (batch.request_counts.completed, batch.request_counts.failed) == (2, 1)
        failed = results(client_of(site, token), batch.error_file_id)
        assert {line["response"]["body"]["error"]["code"] for line in failed.values()} == {"api_key_revoked"}
    finally:
        site.configure(ENABLE_API_KEYS_ENDPOINT_RESTRICTIONS=False, API_KEYS_ALLOWED_ENDPOINTS="")


@pytest.mark.parametrize("row", [pytest.param(row, id=" ".join(row)) for row in sorted(BATCH_ROWS)])
def test_each_row_is_for_those_who_may(site: Site, row: tuple[str, str]) -> None:
    path = row[1].replace("{id}", "file-0" if "/files/" in row[1] else "batch_0")
    body = None if row[0] == "GET" or "{id}" in row[1] else b"{}"
    headers = {"Content-Type": FORM} if row[1].endswith("/files") and body else {}
    tokens = (None, "sk-" + "0" * 64, site.pending, site.user)
    statuses = [site.send(row[0], path, body, token, headers).status for token in tokens]
    found = 404 if row in ID_ROWS else 200 if row in LIST_ROWS else statuses[3]
    assert statuses == [401, 401, 403, found]
    assert statuses[3] < 500


def test_the_official_client_of_anthropic_runs_a_batch(site: Site) -> None:
    site.provider.script()
    client = anthropic.Anthropic(api_key=site.user, base_url=site.daemon.base_url, max_retries=0)
    OPENED.append(client)
    params: Any = {"model": "a.m", "max_tokens": 5, "messages": TURNS}
    asked: Any = [
        {"custom_id": "one", "params": params},
        {"custom_id": "two", "params": {**params, "model": "o.m"}},
        {"custom_id": "foreign", "params": {**params, "model": "a.other"}},
    ]
    batch = client.messages.batches.create(requests=asked)
    assert batch.processing_status == "in_progress"
    deadline = time.monotonic() + 20
    while (batch := client.messages.batches.retrieve(batch.id)).processing_status != "ended":
        assert time.monotonic() < deadline, batch
        time.sleep(0.02)
    assert (batch.request_counts.succeeded, batch.request_counts.errored) == (2, 1)
    found = {each.custom_id: each.result for each in client.messages.batches.results(batch.id)}
    assert [found[name].type for name in ("one", "two", "foreign")] == ["succeeded", "succeeded", "errored"]
    assert found["one"].message.content[0].text == "Hello from m"
    assert found["two"].message.content[0].text == "Hello from m"
    assert found["foreign"].error.error.type == "not_found_error"
    assert next(iter(client.messages.batches.list(limit=1))).id == batch.id
    assert client.messages.batches.delete(batch.id).type == "message_batch_deleted"
    with pytest.raises(anthropic.NotFoundError):
        client.messages.batches.retrieve(batch.id)


@pytest.mark.parametrize(
    "requests",
    [
        [],
        [{"custom_id": "bad id!", "params": {}}],
        [{"custom_id": "a", "params": []}],
        [{"custom_id": "a", "params": {"stream": True}}],
        [{"custom_id": "a", "params": {}}, {"custom_id": "a", "params": {}}],
        [5],
    ],
)
def test_a_bad_batch_of_messages_is_refused(site: Site, requests: Any) -> None:
    body = {"requests": requests}
    status, answer = site.call("POST", "/v1/messages/batches", body, site.user)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


def test_a_killed_daemon_runs_no_finished_line_twice(tmp_path: Path) -> None:
    with background_upstream(("m",), kind=Everything) as provider:
        configuration = tmp_path / "gatewayd.toml"
        configuration.write_text(PROVIDERS.format(url=provider.url))
        settings = {"BATCH_PARALLEL_REQUESTS": "1", "WEBUI_SECRET_KEY": "s" * 40}
        waiting = Reply(steps=[b" ", SILENCE, b"{}"], content_type="application/json")
        with running_daemon(tmp_path / "state", "-f", str(configuration), **settings) as daemon:
            form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
            token = daemon.call("POST", f"{AUTHS}/signup", form)[1]["token"]
            client = client_of(Site(daemon, provider), token)
            provider.script(*[json_reply(openai_completion(str(n))) for n in range(3)], waiting)
            batch = begin(client, lines_of(5))
            provider.wait_silent()
            assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
        folder = tmp_path / "state" / "batches" / "progress"
        (progress,) = folder.iterdir()
        with progress.open("ab") as file:
            file.write(b'4 1 {"half')
        provider.script()
        with running_daemon(tmp_path / "state", "-f", str(configuration), **settings) as daemon:
            client = client_of(Site(daemon, provider), token)
            batch = ended(client, batch.id)
            assert (batch.status, batch.request_counts.completed) == ("completed", 5)
            found = results(client, batch.output_file_id)
            texts = {name: line["response"]["body"]["choices"][0] for name, line in found.items()}
            assert [texts[f"c{n}"]["message"]["content"] for n in range(3)] == ["0", "1", "2"]
            assert len([each for each in provider.fake.requests if each.method == "POST"]) == 2
            assert list(folder.iterdir()) == []
