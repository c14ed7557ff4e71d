"""Every accident of every protocol through every client: what is said comes through, what fails is raised."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ollama
import pytest

from tests.clients.askers import ASKERS, SECONDS, Asker, OllamaAsker
from tests.clients.outcome import Outcome
from tests.clients.scene import Scene, model_of, name_of
from tests.fakes.providers.stream_failure import Accident
from tests.fakes.providers.stream_failures import ACCIDENTS

OF_A_RUNTIME = [name for name, accident in ACCIDENTS.items() if accident.kind == "ollama"]

# The sentences of sources that pass messages on as they are, where they have one of their own.
NATIVE_WORDS = {"anthropic: nothing": "it sent no message_start"}
OWN_WORDS = {f"anthropic: {name}" for name in ("a refusal", "a limit", "an error event")}
"""Failures that a provider of messages tells itself."""


def question(dialect: str, model_id: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model_id, "messages": [{"role": "user", "content": "hi"}]}
    return {**body, "max_tokens": 64} if dialect == "anthropic" else body


def play(scene: Scene, asker: Asker, accident: Accident, model_id: str) -> Outcome:
    # Twice, as a request that meets a kept connection which is just closed is sent again.
    scene.provider.script(accident.reply, accident.reply)
    got = asker.ask(question(asker.dialect, model_id), stream=True)
    scene.provider.release()
    return got


def expected(accident: Accident, dialect: str) -> Outcome:
    """Return what a client of a dialect is to learn beside the failure: the others always have a reason."""
    reason = accident.finish_reason
    if dialect != "openai" and accident.error is None:
        reason = reason or "stop"
    return Outcome(accident.text, accident.thoughts, accident.tool_calls, reason, accident.usage)


# Failing: what a provider of the OpenAI protocol sends is passed on as it is, so that the clients of OpenAI
# are not told "one index for all tool calls", "tool calls without an index" and "arguments as an object" as
# the table says, nor their helper (which looks at `object`) "usage without the field choices" and
# "a character cut in two".
#
# Not here: the runtimes' own client with a runtime, whose answers pass as they are; and the helpers where the
# provider is silent, as each of these takes its time and ends like any other failure.
PAIRS = [
    pytest.param(client, name, id=f"{client}-{name}", marks=marks)
    for client, marks in ASKERS.items()
    for name, accident in ACCIDENTS.items()
    if not client == accident.kind == "ollama"
    if not (accident.is_silent and client.endswith("-helper"))
]


@pytest.mark.parametrize(("asker", "name"), PAIRS, indirect=["asker"])
def test_accident(scene: Scene, asker: Asker, name: str) -> None:
    accident = ACCIDENTS[name]
    got = play(scene, asker, accident, model_of(accident.kind, is_hasty=accident.is_silent))
    if accident.error is None:
        assert got.failure is None
    else:
        assert got.failure is not None
        native = NATIVE_WORDS.get(name) if asker.dialect == accident.kind else None
        assert (native or accident.error) in got.failure.message
        # Clients of a provider's own protocol get its words alone.
        is_own = asker.dialect == accident.kind == "anthropic" and name in OWN_WORDS
        assert (f"{name_of(accident.kind)}'" in got.failure.message) is not is_own
        assert got.is_empty is not accident.is_begun
    if accident.usage is None:
        # Clients of messages are always told an estimate.
        got = replace(got, usage=None)
    assert replace(got, failure=None) == expected(accident, asker.dialect)


@pytest.fixture(scope="module")
def direct(scene: Scene) -> Iterator[OllamaAsker]:
    """Return the runtimes' client without a gateway, with all that it may raise by its own faults."""
    with ollama.Client(scene.provider.url, timeout=SECONDS) as client:
        yield OllamaAsker(client, (Exception,))


@pytest.mark.parametrize("name", OF_A_RUNTIME)
def test_a_runtime_is_heard_as_if_asked_directly(
    scene: Scene, ollama_client: ollama.Client, direct: OllamaAsker, name: str
) -> None:
    """Its own API passes byte for byte, with what its client cannot read; only what breaks off is told."""
    accident = ACCIDENTS[name]
    through = OllamaAsker(ollama_client, (Exception,))
    got = play(scene, through, accident, model_of("ollama", is_hasty=accident.is_silent))
    alone = Outcome(accident.text) if accident.is_silent else play(scene, direct, accident, "m")
    assert replace(got, failure=None) == replace(alone, failure=None)
    if got.failure != alone.failure:
        assert accident.error is not None
        assert got.failure is not None
        assert got.failure.name == "ResponseError"
        assert accident.error in got.failure.message
        assert f"{name_of('ollama')}'" in got.failure.message
    elif accident.error is not None:
        assert got.failure is not None
