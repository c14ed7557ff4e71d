"""The official OpenAI client, unchanged, against the daemon over providers of all kinds."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fakes.daemons.failing_provider_site import MODELS, Site, opened_faulty
from tests.fakes.providers.upstream import (
    CUT,
    SILENCE,
    Reply,
    json_reply,
    openai_chunk,
    openai_completion,
    openai_stream,
    sse,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened_faulty(tmp_path_factory.mktemp("s")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def well(site: Site) -> Iterator[None]:
    """After each test the daemon is well."""
    with site.tended():
        yield


@pytest.fixture
def client(site: Site) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(
        api_key=site.key, base_url=f"{site.daemon.base_url}/v1", max_retries=0, timeout=20
    ) as made:
        yield made


MESSAGES: Any = [{"role": "user", "content": "hi"}]


class TestOpenAiSdk:
    """The official client, unchanged."""

    def test_models(self, client: openai.OpenAI) -> None:
        assert [model.id for model in client.models.list()] == sorted(
            f"{patience}{kind}.m" for patience in ("", "h", "p") for kind in "alo"
        )
        assert client.models.retrieve("o.m").owned_by == "openai"

    @pytest.mark.parametrize("model", MODELS)
    def test_create(self, client: openai.OpenAI, model: str) -> None:
        answer = client.chat.completions.create(model=model, messages=MESSAGES)
        assert answer.choices[0].message.content == "Hello from m"
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 5 or model == "o.m"

    @pytest.mark.parametrize("model", ["a.m", "l.m"])
    def test_stream_with_usage(self, client: openai.OpenAI, model: str) -> None:
        stream = client.chat.completions.create(
            model=model, messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 2
        assert chunks[-1].choices == []
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello from m"

    def test_stream_with_usage_of_a_hosted_provider(self, site: Site, client: openai.OpenAI) -> None:
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        last = sse({**openai_chunk(), "choices": [], "usage": usage})
        *steps, done = openai_stream(["a", "b"])
        site.provider.script(Reply(steps=[*steps, last, done]))
        stream = client.chat.completions.create(
            model="o.m", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.total_tokens == 5
        assert site.provider.last().json["stream_options"] == {"include_usage": True}

    @pytest.mark.parametrize("model", MODELS)
    def test_tools(self, site: Site, client: openai.OpenAI, model: str) -> None:
        function = {"name": "f", "arguments": '{"a":1}'}
        whole = {
            "o.m": openai_completion("", tool_calls=[{"id": "c", "type": "function", "function": function}]),
            "a.m": {"content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
            "l.m": {
                "message": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
                "done": True,
            },
        }
        site.provider.script(json_reply(whole[model]))
        tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        answer = client.chat.completions.create(model=model, messages=MESSAGES, tools=tools)
        calls = answer.choices[0].message.tool_calls
        assert calls is not None
        assert calls[0].type == "function"
        assert (calls[0].function.name, json.loads(calls[0].function.arguments)) == ("f", {"a": 1})

    @pytest.mark.parametrize(
        ("fault", "expected"),
        [
            (json_reply({"error": {"message": "bad"}}, 400), openai.BadRequestError),
            (json_reply({"error": {"message": "wait"}}, 429), openai.RateLimitError),
            (json_reply({"error": {"message": "key"}}, 401), openai.InternalServerError),
            (Reply(before=CUT), openai.InternalServerError),
        ],
    )
    def test_errors_of_the_provider(
        self, site: Site, client: openai.OpenAI, fault: Reply, expected: type[openai.APIStatusError]
    ) -> None:
        # A kept connection that is cut at once is tried again on a new one.
        site.provider.script(fault, fault)
        with pytest.raises(expected) as caught:
            client.chat.completions.create(model="o.m", messages=MESSAGES)
        assert isinstance(caught.value.body, dict)
        assert "hosted" in caught.value.body["message"]
        assert caught.value.request_id

    def test_errors_of_ours(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.create(model="none", messages=MESSAGES)
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("none")
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="o.m", messages=[])
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="sk-wrong").models.list()

    def test_an_error_in_the_stream(self, site: Site, client: openai.OpenAI) -> None:
        site.provider.script(Reply(steps=[sse(openai_chunk(content="one")), CUT]))
        stream = client.chat.completions.create(model="o.m", messages=MESSAGES, stream=True)
        assert next(iter(stream)).choices[0].delta.content == "one"
        with pytest.raises(openai.APIError, match="hosted"):
            next(iter(stream))
        stream.close()

    def test_closing_a_stream_closes_the_provider(self, site: Site, client: openai.OpenAI) -> None:
        site.provider.script(Reply(steps=[sse(openai_chunk(content="one")), SILENCE]))
        with client.chat.completions.create(model="po.m", messages=MESSAGES, stream=True) as stream:
            assert next(iter(stream)).choices[0].delta.content == "one"
        site.provider.wait_closed(1.0)


def test_many_streams_at_once_do_not_mix(site: Site) -> None:
    clients = [openai.OpenAI(api_key=site.key, base_url=f"{site.daemon.base_url}/v1") for _ in range(8)]
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        streams = [
            client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "hi"}], stream=True
            )
            for client in clients
            for model in MODELS
        ]
        for stream in streams:
            assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello from m"
