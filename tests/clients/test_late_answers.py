"""A stream whose source is silent for long has its head and is kept alive, whichever client waits for it."""

import threading
from collections.abc import Iterator
from typing import Any

import anthropic
import ollama
import openai
import orjson
import pytest
import requests

from tests.clients.conversation import Said
from tests.clients.scene import Scene, model_of
from tests.fakes.providers.upstream import SILENCE, Reply, json_reply

HI: Any = [{"role": "user", "content": "hi"}]


def late(kind: str) -> Reply:
    """Return an answer that begins with a silence."""
    reply = Said(("Hel", "lo")).reply(kind, stream=True)
    return Reply(steps=reply.steps, before=SILENCE, content_type=reply.content_type)


def test_openai(scene: Scene, openai_client: openai.OpenAI) -> None:
    scene.provider.script(late("openai"))
    stream = openai_client.chat.completions.create(model=model_of("openai"), messages=HI, stream=True)
    scene.provider.release()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "Hello"


@pytest.mark.parametrize("kind", ["openai", "anthropic"], ids=["converted", "native"])
def test_anthropic(scene: Scene, anthropic_client: anthropic.Anthropic, kind: str) -> None:
    scene.provider.script(late(kind))
    with anthropic_client.messages.stream(model=model_of(kind), messages=HI, max_tokens=9) as stream:
        scene.provider.release()
        assert stream.get_final_text() == "Hello"


def test_ollama(scene: Scene, ollama_client: ollama.Client) -> None:
    scene.provider.script(late("openai"))
    # The client asks when its first part is asked for; blanks come before that part.
    release = threading.Timer(1.5, scene.provider.release)
    release.start()
    parts = list(ollama_client.chat(model_of("openai"), HI, stream=True))
    release.join()
    assert "".join(part.message.content or "" for part in parts) == "Hello"


@pytest.fixture(
    params=[("/v1/chat/completions", {}), ("/v1/messages", {"max_tokens": 9}), ("/ollama/api/chat", {})]
)
def opened(request: pytest.FixtureRequest, scene: Scene) -> Iterator[requests.Response]:
    path, more = request.param
    scene.provider.script(
        Reply(**{**vars(json_reply({"error": {"message": "slow down"}}, 429)), "before": SILENCE})
    )
    body = {"model": model_of("openai"), "messages": HI, "stream": True, **more}
    headers = {"Authorization": f"Bearer {scene.key}"}
    with requests.post(scene.url + path, json=body, headers=headers, stream=True, timeout=30) as reply:
        yield reply


def test_a_late_failure_is_in_band_in_every_dialect(scene: Scene, opened: requests.Response) -> None:
    assert opened.status_code == 200
    scene.provider.release()
    lines = [line for line in opened.text.splitlines() if "slow down" in line]
    (told,) = [orjson.loads(line.removeprefix("data:")) for line in lines]
    assert "error" in told
    assert "[DONE]" not in opened.text
