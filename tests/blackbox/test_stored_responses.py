"""Stored responses outlive the daemon: what was acknowledged is there after a kill, for its owner alone."""

import signal
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.fakes.daemons.daemon import running_daemon
from tests.fakes.daemons.failing_provider_site import configuration, make_key
from tests.fakes.providers.all_routes_upstream import Everything
from tests.fakes.providers.background_upstream import Provider, background_upstream
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply

THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with background_upstream(kind=Everything) as made:
        yield made


def client(url: str, key: str) -> openai.OpenAI:
    return openai.OpenAI(api_key=key, base_url=f"{url}/v1", max_retries=0, timeout=20)


def test_a_conversation_goes_on_after_a_kill(tmp_path: Path, provider: Provider) -> None:
    file = tmp_path / "gatewayd.toml"
    file.touch(0o600)
    file.write_text(configuration(provider.url))
    arguments = ("-f", str(file))
    with running_daemon(tmp_path / "state", *arguments, ENABLE_API_KEYS="true") as daemon:
        key = make_key(daemon)
        with client(daemon.base_url, key) as sdk:
            provider.script(json_reply({"content": [THOUGHT, {"type": "text", "text": "one"}]}))
            first = sdk.responses.create(model="a.m", input="hi")
            provider.script(Reply(steps=[SILENCE]))
            running = sdk.responses.create(model="a.m", input="hi", background=True)
            assert running.status == "queued"
            provider.wait_silent()
            with sdk.responses.stream(model="l.m", input="hi", previous_response_id=first.id) as stream:
                for event in stream:
                    if event.type == "response.completed":
                        # The last event acknowledges what was stored.
                        assert daemon.stop(signal.SIGKILL) == -signal.SIGKILL
                        second = event.response.id
                        break
    with (
        running_daemon(tmp_path / "state", *arguments, ENABLE_API_KEYS="true") as daemon,
        client(daemon.base_url, key) as sdk,
    ):
        assert sdk.responses.retrieve(first.id).output == first.output
        cut = sdk.responses.retrieve(running.id)
        assert cut.error is not None
        assert (cut.status, "restarted" in cut.error.message) == ("failed", True)
        assert sdk.responses.retrieve(second).output_text == "Hello from m"
        again = sdk.responses.create(model="a.m", input="more", previous_response_id=second)
        assert again.previous_response_id == second
        sent = provider.last().json["messages"]
        assert sent[1]["content"] == [THOUGHT, {"type": "text", "text": "one"}]
        assert [turn["role"] for turn in sent] == ["user", "assistant", "user", "assistant", "user"]
        sdk.responses.delete(first.id)
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.responses.create(model="a.m", input="more", previous_response_id=second)
        assert caught.value.code == "previous_response_not_found"
