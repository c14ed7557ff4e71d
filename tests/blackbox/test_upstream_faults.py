"""Providers that fail in every way, seen through the whole daemon in every dialect."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from tests.fakes.daemons.failing_provider_site import KEY, NAMES, Site, opened_faulty
from tests.fakes.http.raw_http import Reply as Answer
from tests.fakes.providers.model_requests import STREAMING, WHOLE, begun
from tests.fakes.providers.questions import (
    ANTHROPIC,
    COMPLETION,
    OLLAMA,
    RESPONSE,
    RESPONSES,
    Question,
    failures,
    texts,
)
from tests.fakes.providers.upstream import CUT, SILENCE, Reply, anthropic_events, json_reply, ndjson, sse


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_faulty(tmp_path_factory.mktemp("s")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(site: Site) -> Iterator[None]:
    """After each fault the daemon is well."""
    with site.tended():
        yield


ASKED = [
    *(pytest.param(*case, False, id=f"{name}, whole") for name, case in WHOLE.items()),
    *(pytest.param(*case, True, id=f"{name}, streamed") for name, case in STREAMING.items()),
]
# Its clients know one word for all failures of a server.
CODES = {RESPONSES: "server_error"}

HTML = b"<!doctype html><html><b>x</b></html>"

FAULTS: dict[str, tuple[Reply, int]] = {
    "refusal": (json_reply({"error": {"message": "no such thing as that"}}, 400), 400),
    "refusal without a body": (Reply(500, content_type=""), 502),
    "an unknown status": (json_reply({}, 418), 502),
    "a rejected key": (json_reply({"error": {"message": f"Incorrect API key provided: {KEY}."}}, 401), 502),
    "a key without the right": (json_reply({"error": f"{KEY[:9]}***{KEY[-8:]} may not"}, 403), 502),
    "an unpaid bill": (json_reply({"error": {"message": "pay"}}, 402), 429),
    "a cut before the head": (Reply(before=CUT), 502),
    "a cut after the head": (Reply(steps=[b"", CUT]), 502),
    "an HTML page": (Reply(steps=[HTML], content_type="text/html"), 502),
    "an HTML page as an error": (Reply(503, steps=[b"<html>canary</html>"], content_type="text/html"), 503),
    "a redirect": (Reply(302, {"Location": "http://127.0.0.1:1/elsewhere"}), 502),
    "a redirect that keeps the method": (Reply(308, {"Location": "http://127.0.0.1:1/elsewhere"}), 502),
    "nothing": (Reply(), 502),
    "garbage": (Reply(steps=[b"\x00\xff\xfe garbage"], content_type="application/json"), 502),
    "garbage as a stream": (Reply(steps=[b"data: garbage\n\n"]), 502),
    "invalid UTF-8": (Reply(steps=[b'data: {"a": "\xff"}\n\n']), 502),
    "a list": (json_reply([1]), 502),
    "an error with status 200": (json_reply({"error": {"message": f"overloaded {KEY}", "code": 503}}), 503),
    "too deep": (Reply(steps=[b"data: " + b'{"a":' * 600 + b"1" + b"}" * 600 + b"\n\n"]), 502),
    "one endless line": (Reply(steps=[b"data: ", *[b"x" * 1_000_000] * 30]), 502),
}


@pytest.mark.parametrize(
    ("name", "question", "model", "stream"),
    [
        pytest.param(name, *asked.values, id=f"{name}-{asked.id}")
        for name in FAULTS
        for asked in ASKED
        # The gateway asks such a site for chats from then on: see the last test.
        if (name, asked.values[0]) != ("an HTML page", RESPONSE)
    ],
)
def test_a_fault_before_the_first_byte_is_a_status(
    site: Site, name: str, question: Question, model: str, stream: bool
) -> None:
    fault, status = FAULTS[name]
    # A kept connection that is cut at once is tried again on a new one.
    site.provider.script(fault, fault)
    provider = NAMES[model]
    if name == "an HTML page" and question is COMPLETION:
        # So a site answers that has no such endpoint.
        status = 404
    if name == "an unpaid bill" and question.dialect is ANTHROPIC:
        status = 402
    reply = site.ask(question, model, stream=stream)
    if is_the_providers_own(question, model, fault):
        assert (reply.status, reply.body) == (fault.status, b"".join(fault.steps))  # type: ignore[arg-type]
        return
    if name == "an error with status 200" and question.dialect is OLLAMA and model == "l.m" and stream:
        assert (reply.status, set(reply.json)) == (200, {"error"})
        assert_clean(reply)
        return
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/json"
    assert provider in (question.dialect.failure(reply.json) or "")
    assert_clean(reply)
    assert len(reply.body) < 4096
    assert len(site.provider.fake.requests) == 1 or fault.before is CUT


def is_the_providers_own(question: Question, model: str, fault: Reply) -> bool:
    """Tell whether a client of the provider's protocol gets a refusal as the provider wrote it."""
    if fault.status < 400 or fault.status in (401, 403) or fault.content_type == "text/html":
        return False
    if question.dialect is ANTHROPIC and model == "a.m":
        return bool(fault.steps)
    return question.dialect is OLLAMA and model == "l.m" and not question.path.startswith("/ollama/v1")


def assert_clean(reply: Answer) -> None:
    """Check that nothing of the key and no page came through."""
    assert KEY not in reply.body.decode()
    assert KEY[-8:] not in reply.body.decode()
    assert b"<html" not in reply.body


@pytest.mark.parametrize(
    "silence", [Reply(before=SILENCE), Reply(steps=[SILENCE])], ids=["no head", "a head"]
)
def test_a_silent_provider_is_given_up(site: Site, silence: Reply) -> None:
    asked = [
        (*case, stream) for cases, stream in ((WHOLE, False), (STREAMING, True)) for case in cases.values()
    ]
    site.provider.script(*[silence] * len(asked))
    with ThreadPoolExecutor(len(asked)) as pool:
        replies = list(pool.map(lambda it: site.ask(it[0], f"h{it[1]}", stream=it[2]), asked))
    for (question, model, _), reply in zip(asked, replies, strict=True):
        assert reply.status == 504, reply
        assert NAMES[model] in (question.dialect.failure(reply.json) or "")
        if question.dialect is ANTHROPIC:
            assert reply.json["error"]["type"] == "timeout_error"


def test_a_provider_that_falls_silent_is_given_up(site: Site) -> None:
    with ExitStack() as stack:
        streams = []
        for question, model in STREAMING.values():
            site.provider.script(Reply(steps=[begun(question, model), SILENCE]))
            streams.append(stack.enter_context(site.opened(question, f"h{model}")))
        for (question, model), stream in zip(STREAMING.values(), streams, strict=True):
            reply = stream.rest()
            *before, last = failures(question.dialect, reply)
            assert texts(question.dialect, reply) == "one"
            assert set(before) == {None}
            assert NAMES[model] in (last or "")
            final = question.dialect.frames(reply.body)[-1]
            if question.dialect is ANTHROPIC:
                assert final["error"]["type"] == "timeout_error"
            elif question.dialect is not OLLAMA:
                assert final["error"]["code"] == CODES.get(question.dialect, "timeout")


@pytest.mark.parametrize(("question", "model", "stream"), ASKED)
def test_a_provider_s_limit_is_passed_on(site: Site, question: Question, model: str, stream: bool) -> None:
    site.provider.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="17"))
    reply = site.ask(question, model, stream=stream)
    assert (reply.status, reply.headers["retry-after"]) == (429, "17")
    assert b"slow down" in reply.body
    if question.dialect is not OLLAMA and (question.dialect is not ANTHROPIC or model != "a.m"):
        assert reply.json["error"]["type"] == "rate_limit_error"


BREAKS: dict[str, Any] = {
    "a cut": [CUT],
    "a cut in an event": [b'data: {"cho', CUT],
    "an early end": [],
    "garbage": [b"data: garbage\n\ngarbage\n"],
    "invalid UTF-8": [b'data: {"a": "\xff"}\n\n{"a": "\xff"}\n'],
    "an endless line": [b"data: ", *[b"x" * 1_000_000] * 30],
    "HTML": [HTML],
}


@pytest.mark.parametrize(("question", "model"), STREAMING.values(), ids=STREAMING)
@pytest.mark.parametrize("name", BREAKS)
def test_a_fault_in_a_stream_is_an_event_and_its_end(
    site: Site, name: str, question: Question, model: str
) -> None:
    site.provider.script(Reply(steps=[begun(question, model), *BREAKS[name]]))
    reply = site.ask(question, model, stream=True)
    assert reply.status == 200
    *before, last = failures(question.dialect, reply)
    assert texts(question.dialect, reply) == "one"
    assert set(before) == {None}
    assert NAMES[model] in (last or "")
    final = question.dialect.frames(reply.body)[-1]
    if question.dialect is ANTHROPIC:
        assert final["error"]["type"] == "api_error"
    elif question.dialect is not OLLAMA:
        assert final["error"]["code"] == CODES.get(question.dialect, "upstream_failed")
    assert_clean(reply)


def error_in_band(question: Question, model: str) -> bytes:
    sentence = f"broke, {KEY}"
    if model == "l.m":
        return ndjson({"error": sentence})
    if model == "a.m":
        error = {"type": "error", "error": {"type": "overloaded_error", "message": sentence}}
        return anthropic_events(error)
    return sse({"error": {"message": sentence, "type": "server_error"}})


@pytest.mark.parametrize(("question", "model"), STREAMING.values(), ids=STREAMING)
def test_an_error_of_the_provider_in_its_stream_is_passed_on(
    site: Site, question: Question, model: str
) -> None:
    end = b"" if model == "l.m" else sse(b"[DONE]")
    site.provider.script(Reply(steps=[begun(question, model), error_in_band(question, model), end]))
    reply = site.ask(question, model, stream=True)
    assert b"broke" in reply.body
    assert texts(question.dialect, reply) == "one"
    assert_clean(reply)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_site_without_responses_is_asked_for_chats(site: Site, stream: bool) -> None:
    model = next(model for question, model in WHOLE.values() if question is RESPONSE)
    fault, status = FAULTS["an HTML page"]
    site.provider.script(fault, fault)
    reply = site.ask(RESPONSE, model, stream=stream)
    assert reply.status == status, reply
    assert NAMES[model] in (RESPONSE.dialect.failure(reply.json) or "")
    assert_clean(reply)
    paths = [request.path.rpartition("/v1")[2] for request in site.provider.fake.requests]
    # It is remembered what it lacks.
    assert paths == (["/chat/completions"] if stream else ["/responses", "/chat/completions"])
