"""Tests for gatewayd.upstream.sources.refusals, and of sources that are refused a harmless field."""

import logging

import orjson
import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.catalog.records import Model
from gatewayd.errors import GatewayError
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from gatewayd.upstream.sources.refusals import (
    LEARNT_SECONDS,
    MAX_LEARNT_FIELDS,
    MAX_LEARNT_MODELS,
    MAX_RETRIES,
    RefusalMemory,
)
from tests.fakes.providers.strict.base import Body, StrictProvider, StrictRefusalError, openai_error
from tests.fakes.providers.strict.responses import StrictResponses
from tests.fakes.providers.upstream import json_reply

PATH = "/chat/completions"
ASKED = {"effort": "low", "summary": "auto"}
MODEL = Model("m", "m", "openai", "acme", "m")
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "seed": 3, "user": "ada"}


def refusal_of(name: str) -> bytes:
    return orjson.dumps(openai_error(f"Unrecognized request argument supplied: {name}"))


def refuse_seed(body: Body) -> None:
    if "seed" in body:
        raise StrictRefusalError(400, openai_error("Unrecognized request argument supplied: seed"))


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_was_refused_is_left_out_for_an_hour_for_that_model_only() -> None:
    clock = Clock()
    memory = RefusalMemory("acme", clock)
    assert memory.apply(PATH, BODY).body is BODY
    again = memory.answer(PATH, BODY, 400, refusal_of("seed"))
    assert again is not None
    assert not memory.has_learnt
    memory.remember(PATH, again)
    assert again.body == {name: value for name, value in BODY.items() if name != "seed"}
    assert again.sentences == ("left out seed: provider 'acme' refused it",)
    clock.now = LEARNT_SECONDS - 1
    assert memory.apply(PATH, BODY) == again
    assert memory.apply("/embeddings", BODY).body is BODY
    assert memory.apply("/openai/deployments/d/chat/completions?api-version=1", BODY).sentences
    assert memory.apply(PATH, {**BODY, "model": "other"}).sentences == ()
    assert memory.apply(PATH, again.body).sentences == ()
    clock.now = LEARNT_SECONDS + 1
    assert memory.apply(PATH, BODY).body is BODY
    assert not memory.has_learnt


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_other_statuses_teach_nothing(status: int) -> None:
    assert RefusalMemory("acme").answer(PATH, BODY, status, refusal_of("seed")) is None


@pytest.mark.parametrize(
    "refusal", [b"", b"\xff", b"{", b"null", refusal_of("messages"), refusal_of("top_k")]
)
def test_refusals_without_a_harmless_field_teach_nothing(refusal: bytes) -> None:
    assert RefusalMemory("acme").answer(PATH, BODY, 400, refusal) is None


def test_the_memory_is_bounded() -> None:
    memory = RefusalMemory("acme")

    def learn(body: Body, refusal: bytes) -> None:
        again = memory.answer(PATH, body, 400, refusal)
        assert again is not None
        memory.remember(PATH, again)

    for number in range(MAX_LEARNT_MODELS + 5):
        learn({**BODY, "model": f"m{number}"}, refusal_of("seed"))
    assert memory.apply(PATH, {**BODY, "model": "m0"}).sentences == ()
    assert memory.apply(PATH, {**BODY, "model": f"m{MAX_LEARNT_MODELS}"}).sentences != ()
    text = "Unsupported value: 'temperature' does not support {} with this model."
    for number in range(MAX_LEARNT_FIELDS + 5):
        body = {**BODY, "temperature": number}
        learn(body, orjson.dumps(openai_error(text.format(number), param="temperature")))
    assert memory.apply(PATH, {**BODY, "temperature": 0}).sentences == ()
    assert memory.apply(PATH, {**BODY, "temperature": MAX_LEARNT_FIELDS}).sentences != ()


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_request_is_sent_once_more(is_stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with StrictProvider(refuse_seed) as provider:
        source = open_source(ProviderConfig("acme", SourceKind.OPENAI, provider.base_url))
        contexts = [CallContext("r1", "u1"), CallContext("r2", "u1")]
        with caplog.at_level(logging.WARNING):
            for context in contexts:
                if is_stream:
                    chunks = [chunk async for chunk in source.stream(dict(BODY), MODEL, context)]
                    assert b"Hello." in b"".join(chunk.raw or b"" for chunk in chunks)
                else:
                    await source.complete(dict(BODY), MODEL, context)
        await source.close()
    assert [context.warnings for context in contexts] == [["left out seed: provider 'acme' refused it"]] * 2
    assert [asked.refusal is not None for asked in provider.requests] == [True, False, False]
    assert [record.message for record in caplog.records] == [
        "request sent again: left out seed: provider 'acme' refused it"
    ]


async def test_a_request_is_sent_again_for_a_few_fields(fake) -> None:
    names = ("seed", "user", "store", "metadata", "verbosity")
    fake.script(*(json_reply(orjson.loads(refusal_of(name)), 400) for name in names))
    source = open_source(ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url))
    body = {**BODY, "store": False, "metadata": {}, "verbosity": "low"}
    context = CallContext("r1", "u1")
    with pytest.raises(GatewayError, match="supplied: verbosity"):
        await source.complete(dict(body), MODEL, context)
    assert len(fake.requests) == 1 + MAX_RETRIES
    assert context.warnings == []
    fake.script(*(json_reply(orjson.loads(refusal_of(name)), 400) for name in names[:2]))
    await source.complete(dict(body), MODEL, context)
    await source.complete(dict(body), MODEL, context)
    await source.close()
    assert [set(names) & request.json.keys() for request in fake.requests[1 + MAX_RETRIES :]] == [
        set(names),
        set(names) - {"seed"},
        set(names) - {"seed", "user"},
        set(names) - {"seed", "user"},
    ]
    assert len(context.warnings) == 4


async def test_a_refusal_that_quotes_its_caller_teaches_nothing() -> None:
    """What a caller makes a provider say has no effect on others."""

    def refuse_word(body: Body) -> None:
        if "Unsupported" in str(body["messages"]):
            text = f"the prompt was rejected: {body['messages'][0]['content']}"
            raise StrictRefusalError(400, openai_error(text))

    async with StrictProvider(refuse_word) as provider:
        source = open_source(ProviderConfig("acme", SourceKind.OPENAI, provider.base_url))
        content = "Unsupported parameter: 'seed' is not supported with this model."
        with pytest.raises(GatewayError):
            await source.complete(
                {**BODY, "messages": [{"role": "user", "content": content}]}, MODEL, CallContext("r1", "u2")
            )
        context = CallContext("r2", "u1")
        await source.complete(dict(BODY), MODEL, context)
        await source.close()
    assert provider.answered[-1]["seed"] == 3
    assert context.warnings == []


async def test_responses_and_converted_messages_learn_and_native_messages_do_not(fake) -> None:
    refused = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "temperature: Extra inputs are not permitted"},
    }
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "temperature": 1, "max_tokens": 5}
    source = open_source(ProviderConfig("acme", SourceKind.ANTHROPIC, fake.base_url))
    context = CallContext("r1", "u1")
    fake.script(json_reply(refused, 400))
    await source.complete(dict(body), MODEL, context)
    assert context.warnings == ["left out temperature: provider 'acme' refused it"]
    native = CallContext("r2", "u1")
    fake.script(json_reply(refused, 400))
    with pytest.raises(GatewayError):
        await source.complete_message(dict(body), MODEL, native)
    await source.close()
    assert native.warnings == []
    assert ["temperature" in request.json for request in fake.requests] == [True, False, True]
    openai = open_source(ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url))
    fake.script(
        json_reply(openai_error("Unknown parameter: 'seed'.", param="seed"), 400), json_reply({"id": "r"})
    )
    answer = await openai.forward("POST", "/responses", {"model": "m", "input": "Hi", "seed": 1}, context)
    assert answer.status == 200
    await answer.aclose()
    await openai.close()
    assert "seed" not in fake.requests[-1].json


async def test_openai_gets_nothing_of_codex_that_its_model_lacks() -> None:
    async with StrictResponses() as fake:
        source = open_source(ProviderConfig("acme", SourceKind.OPENAI, fake.openai_url, key=fake.key))
        body = {"model": "plain", "input": "Hi", "client_metadata": {"turn_id": "t1"}}
        body |= {"include": ["reasoning.encrypted_content"], "reasoning": ASKED}
        for _ in range(2):
            answer = await source.forward("POST", "/responses", dict(body), CallContext("r1", "u1"))
            await answer.aclose()
            assert answer.status == 200
        await source.close()
    bodies = [request.json for request in fake.requests]
    assert ["client_metadata" in body for body in bodies] == [True, *[False] * 5]
    assert ["include" in body for body in bodies] == [True, True, *[False] * 4]
    assert [body["reasoning"] for body in bodies] == [*[ASKED] * 3, {"summary": "auto"}, {}, {}]


def learn(memory: RefusalMemory, body: Body, *refusals: Body) -> Body:
    """Remember what a provider accepted after these refusals, and return the request that it accepted."""
    changes = []
    for refusal in refusals:
        changed = memory.answer(PATH, body, 400, orjson.dumps(refusal))
        assert changed is not None
        changes.append(changed)
        body = dict(changed.body)
    for changed in changes:
        memory.remember(PATH, changed)
    return body


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("user", "max_tokens at most 1 token"),
        ("user", "unknown parameter: temperature"),
        ("service_tier", "temperature"),
        ("metadata", {"unsupported parameter: temperature": "x"}),
        ("metadata", {"a": [{"b": "unsupported parameter: temperature"}]}),
    ],
)
def test_a_refusal_that_quotes_its_caller_changes_no_request_of_others(field: str, said: object) -> None:
    memory = RefusalMemory("acme")
    refusal = openai_error(f"Unsupported value: {said}", param=field)
    body = {"model": "m", "max_tokens": 100, "temperature": 1, field: said}
    for _ in range(2):
        changed = memory.answer(PATH, body, 400, orjson.dumps(refusal))
        assert changed is not None
        memory.remember(PATH, changed)
        body = dict(changed.body)
        if field not in body:
            break
    assert field not in body
    assert not memory.has_learnt


LONG = "what a caller says first " * 10


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"{LONG} unknown parameter: temperature", "...er says first  unknown parameter: temperature"),
        ("a\nunknown parameter: temperature", "'a\\nunknown parameter: temperature'"),
        ("a\n'temperature' is not supported", "\"a\\n'temperature' is not supported\""),
        (f"unknown parameter: temperature {'x' * 30_000}", "x" * 30),
    ],
)
def test_a_refusal_that_quotes_the_middle_of_a_text_teaches_nothing(said: str, shown: str) -> None:
    memory = RefusalMemory("acme")
    body = {"model": "m", "temperature": 1, "user": said}
    changed = memory.answer(
        PATH, body, 400, orjson.dumps(openai_error(f"Unsupported value: {shown}", param="user"))
    )
    assert changed is not None
    memory.remember(PATH, changed)
    assert not memory.has_learnt


def test_a_text_with_the_name_of_a_field_does_not_keep_from_learning() -> None:
    body = {"model": "m", "user": "user-1234567", "metadata": {"of": "the user of ours"}}
    assert "user" not in learn(
        RefusalMemory("acme"), body, openai_error("Unsupported parameter: 'user'", param="user")
    )
    memory = RefusalMemory("acme")
    learn(memory, body, openai_error("Unsupported parameter: 'user'", param="user"))
    assert memory.has_learnt


def test_a_request_with_too_many_values_to_search_teaches_nothing() -> None:
    memory = RefusalMemory("acme")
    body = {**BODY, "logit_bias": {str(number): 1 for number in range(5_000)}}
    assert "seed" not in learn(memory, body, openai_error("Unrecognized request argument supplied: seed"))
    assert not memory.has_learnt


def test_a_field_refused_beside_another_is_left_out_beside_it_only() -> None:
    memory = RefusalMemory("acme")
    refusal = openai_error("`temperature` and `top_p` cannot both be specified for this model.")
    assert learn(memory, {"model": "m", "temperature": 1, "top_p": 0.5}, refusal) == {
        "model": "m",
        "temperature": 1,
    }
    alone = {"model": "m", "top_p": 0.1}
    assert memory.apply(PATH, alone).body is alone
    assert "top_p" not in memory.apply(PATH, {**alone, "temperature": 0}).body


def test_a_refused_effort_in_an_object_is_that_word_only() -> None:
    memory = RefusalMemory("acme")
    refusal = openai_error("Unsupported value: 'max' is not supported.", param="reasoning.effort")
    assert learn(memory, {"model": "m", "reasoning": {"effort": "max"}}, refusal)["reasoning"] == {}
    low = {"model": "m", "reasoning": {"effort": "low"}}
    assert memory.apply(PATH, low).body is low
    assert memory.apply(PATH, {"model": "m", "reasoning": {"effort": "max"}}).sentences
