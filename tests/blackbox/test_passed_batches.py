"""Batches that their provider runs, by the official clients: once, over kills, with usage, and refusals."""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.loop_thread import background_loop
from tests.fakes.providers.batch_provider import BatchProvider
from tests.fakes.storage.gateway_place import rows
from tests.fakes.storage.gateway_place import run as change

PASSWORD = "correct horse"
CHATS: Any = "/v1/chat/completions"
TURNS: Any = [{"role": "user", "content": "hi"}]
PROVIDERS = """
[[providers]]
name = "hosted"
base_url = "{chat.base_url}"
prefix = "o."
batches = "passed"

[[providers]]
name = "native"
kind = "anthropic"
base_url = "{messages.base_url}"
prefix = "a."
batches = "passed"

[[providers]]
name = "plain"
base_url = "{chat.base_url}"
prefix = "p."
"""
SETTINGS = {"WEBUI_SECRET_KEY": "s" * 40, "GLOBAL_LOG_LEVEL": "DEBUG"}


@dataclass
class Site:
    """The two providers, and the daemon before them."""

    chat: BatchProvider
    messages: BatchProvider
    configuration: Path
    state: Path
    token: str = ""

    @contextlib.contextmanager
    def running(self) -> Iterator[Daemon]:
        with running_daemon(self.state, "-f", str(self.configuration), **SETTINGS) as daemon:
            if not self.token:
                form = {"name": "Root", "email": "root@example.org", "password": PASSWORD}
                self.token = daemon.call("POST", "/api/v1/auths/signup", form)[1]["token"]
            yield daemon


@contextlib.contextmanager
def clients(daemon: Daemon, token: str) -> Iterator[tuple[openai.OpenAI, anthropic.Anthropic]]:
    with (
        openai.OpenAI(api_key=token, base_url=f"{daemon.base_url}/v1", max_retries=0) as chat,
        anthropic.Anthropic(api_key=token, base_url=daemon.base_url, max_retries=0) as messages,
    ):
        yield chat, messages


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with background_loop() as loop:
        made = [BatchProvider(), BatchProvider(is_messages=True)]

        def run(work: Any) -> None:
            asyncio.run_coroutine_threadsafe(work, loop).result(30)

        for each in made:
            run(each.__aenter__())
        configuration = tmp_path / "gatewayd.toml"
        configuration.write_text(PROVIDERS.format(chat=made[0], messages=made[1]))
        try:
            yield Site(made[0], made[1], configuration, tmp_path / "state")
        finally:
            for each in made:
                run(each.__aexit__())


def lines_of(count: int, model: str = "o.m", **changes: Any) -> bytes:
    body = {"model": model, "messages": TURNS}
    lines = [
        {"custom_id": f"c{number}", "method": "POST", "url": CHATS, "body": body, **changes}
        for number in range(count)
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def begin(client: openai.OpenAI, lines: bytes, endpoint: Any = CHATS) -> Any:
    file = client.files.create(file=("a.jsonl", lines), purpose="batch")
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")


def ended(client: openai.OpenAI, batch_id: str, seconds: float = 90) -> Any:
    deadline = time.monotonic() + seconds
    while (batch := client.batches.retrieve(batch_id)).status in {
        *("validating", "in_progress", "finalizing", "cancelling"),
    }:
        assert time.monotonic() < deadline, batch
        time.sleep(0.05)
    return batch


def results(client: openai.OpenAI, file_id: str | None) -> dict[str, Any]:
    assert file_id
    found = [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
    assert len({line["custom_id"] for line in found}) == len(found)
    return {line["custom_id"]: line for line in found}


def usage(daemon: Daemon, model: str) -> dict[str, Any]:
    done = daemon.run_ctl("usage", "report", "--by", "model", "-o", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = found["data"] if isinstance(found, dict) else found
    return next((dict(row) for row in rows if model in str(row)), {})


def wait_for(what: Any, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_client_of_openai_has_its_batch_run_by_the_provider(site: Site) -> None:
    with site.running() as daemon, clients(daemon, site.token) as (client, _):
        batch = begin(
            client, lines_of(3) + lines_of(1, "o.n", custom_id="d") + lines_of(1, "gone", custom_id="e")
        )
        batch = ended(client, batch.id)
        assert (batch.status, batch.request_counts.completed, batch.request_counts.failed) == (
            "completed",
            4,
            1,
        )
        found = results(client, batch.output_file_id)
        assert {name: line["response"]["body"]["model"] for name, line in found.items()} == {
            **dict.fromkeys(("c0", "c1", "c2"), "o.m"),
            "d": "o.n",
        }
        assert found["c1"]["response"]["body"]["choices"][0]["message"]["content"] == "Hello."
        (failed,) = results(client, batch.error_file_id).values()
        assert (failed["custom_id"], failed["response"]["status_code"]) == ("e", 404)
        # The provider got its own names, and none of the caller's ids.
        (sent,) = site.chat.lines.values()
        assert [line["body"]["model"] for line in sent] == ["m", "m", "m", "n"]
        assert all(line["custom_id"].startswith("gw_") for line in sent)
        assert [each for each in site.chat.requests if each.method == "POST"] == []
        # What the provider kept is deleted.
        assert site.chat.files == {}
        assert site.chat.lengths[0] is not None
        shown = usage(daemon, "o.m")
        assert (shown["requests"], shown["prompt_tokens"], shown["completion_tokens"]) == (3, 15, 9)
        assert list((site.state / "batches" / "passed").iterdir()) == []


def test_the_client_of_anthropic_has_its_batch_run_by_the_provider(site: Site) -> None:
    with site.running() as daemon, clients(daemon, site.token) as (_, client):
        params: Any = {"model": "a.m", "max_tokens": 5, "messages": TURNS}
        asked: Any = [{"custom_id": name, "params": params} for name in ("one", "two")]
        batch = client.messages.batches.create(requests=asked)
        wait_for(lambda: client.messages.batches.retrieve(batch.id).processing_status == "ended")
        found = {each.custom_id: each.result for each in client.messages.batches.results(batch.id)}
        assert [found[name].type for name in ("one", "two")] == ["succeeded", "succeeded"]
        assert found["one"].message.model == "a.m"
        (sent,) = site.messages.lines.values()
        assert [line["params"]["model"] for line in sent] == ["m", "m"]
        assert usage(daemon, "a.m")["prompt_tokens"] == 10
        mixed: Any = [*asked, {"custom_id": "three", "params": {**params, "model": "o.m"}}]
        with pytest.raises(anthropic.BadRequestError, match=r"line 3 names model 'o\.m'"):
            client.messages.batches.create(requests=mixed)


def test_models_of_several_providers_are_refused_with_their_line(site: Site) -> None:
    with site.running() as daemon, clients(daemon, site.token) as (client, _):
        lines = lines_of(2) + lines_of(1, "p.m", custom_id="d")
        with pytest.raises(openai.BadRequestError, match=r"line 3 names model 'p\.m' of 'plain'") as caught:
            begin(client, lines)
        assert caught.value.code == "mixed_providers"
        # Those of providers that run none are run by the gateway, together.
        batch = ended(client, begin(client, lines_of(2, "p.m")).id)
        assert batch.request_counts.completed == 2
        assert site.chat.count("POST batches") == 0


def submission(site: Site) -> dict[str, Any]:
    """Return the stored state of the one batch that a provider has."""
    [(state,)] = rows(site.state / "gatewayd.db", "SELECT state FROM passed_batches")
    found: dict[str, Any] = json.loads(state)
    return found


@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("kind", ["chat", "messages"])
def test_a_killed_daemon_submits_no_batch_twice(site: Site, kind: str, *, is_answered: bool) -> None:
    provider = site.chat if kind == "chat" else site.messages
    provider.questions = 10**6
    if not is_answered:
        provider.forgets = {"POST batches"}
    with site.running() as daemon, clients(daemon, site.token) as (client, messages):
        if kind == "chat":
            batch_id = begin(client, lines_of(3)).id
        else:
            params: Any = {"model": "a.m", "max_tokens": 5, "messages": TURNS}
            asked: Any = [{"custom_id": f"c{n}", "params": params} for n in range(3)]
            batch_id = messages.messages.batches.create(requests=asked).id
        wait_for(lambda: provider.batches)
        wait_for(lambda: submission(site)["tried_at"])
        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
    if not is_answered:
        lost = json.dumps({**submission(site), "batch_id": ""})
        change(site.state / "gatewayd.db", "UPDATE passed_batches SET state = ?", (lost,))
    provider.questions = 2
    with site.running() as daemon, clients(daemon, site.token) as (client, messages):
        if kind == "chat":
            assert ended(client, batch_id).request_counts.completed == 3
        else:
            wait_for(lambda: messages.messages.batches.retrieve(batch_id).processing_status == "ended")
            assert messages.messages.batches.retrieve(batch_id).request_counts.succeeded == 3
        assert provider.count("POST batches") == 1
        assert usage(daemon, f"{'o' if kind == 'chat' else 'a'}.m")["requests"] == 3


def test_a_cancelled_batch_is_cancelled_at_the_provider(site: Site) -> None:
    site.chat.questions = 10**6
    with site.running() as daemon, clients(daemon, site.token) as (client, _):
        batch = begin(client, lines_of(3))
        wait_for(lambda: client.batches.retrieve(batch.id).request_counts.completed == 1)
        # On a busy machine the provider may have ended it meanwhile.
        assert client.batches.cancel(batch.id).status in {"cancelling", "finalizing", "cancelled"}
        batch = ended(client, batch.id)
        assert (batch.status, batch.request_counts.completed) == ("cancelled", 1)
        assert len(results(client, batch.output_file_id)) == 1
        assert site.chat.count("POST batches cancel") == 1
