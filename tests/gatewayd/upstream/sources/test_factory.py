from contextlib import suppress

import pytest

from gatewayd.catalog.interfaces import CallContext, EmbeddingSource, MessagesSource
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.sources import bedrock_client
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources.factory import open_source
from gatewayd.upstream.tools.identity import IdentityHeaders

CASES = [
    (SourceKind.OPENAI, "/v1/models"),
    (SourceKind.ANTHROPIC, "/v1/models"),
    (SourceKind.OLLAMA, "/api/tags"),
    (SourceKind.AZURE, "/openai/v1/models"),
    (SourceKind.GEMINI, "/v1beta/models"),
]


@pytest.mark.parametrize(("kind", "path"), CASES)
async def test_each_kind_lists_its_models(fake, kind, path):
    base_url = fake.openai_url if kind is SourceKind.OPENAI else fake.base_url
    source = open_source(ProviderConfig("acme", kind, base_url, prefix="acme/", models=("m",)))
    try:
        assert source.name == "acme"
        assert [model.id for model in await source.list_models()] == ["acme/m"]
    finally:
        await source.close()
    assert fake.requests[0].path == path


class ClosingClient:
    closed = False

    async def request(self, method, url, headers, body=None):
        raise NotImplementedError

    async def close(self):
        self.closed = True


@pytest.mark.parametrize("kind", list(SourceKind))
async def test_the_client_can_be_replaced_and_is_closed(kind):
    client = ClosingClient()
    await open_source(ProviderConfig("acme", kind, "http://acme.test", models=("m",)), client).close()
    assert client.closed


async def calls(source, context):
    """Ask for everything that a source can do; what it answers does not matter."""
    model = Model("m", "m", "o", "acme", "m")
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    works = [source.complete(body, model, context), anext(aiter(source.stream(body, model, context)))]
    if isinstance(source, EmbeddingSource):
        works.append(source.embed({"model": "m", "input": ["a"]}, model, context))
    if isinstance(source, MessagesSource):
        works.append(source.complete_message(body, model, context))
        works.append(anext(aiter(source.stream_message(body, model, context))))
    for work in works:
        with suppress(GatewayError):
            await work
    return len(works)


# The library of Bedrock sends its requests itself, see test_bedrock.py.
@pytest.mark.parametrize("kind", [kind for kind in SourceKind if kind is not SourceKind.BEDROCK])
async def test_every_request_of_a_user_tells_who_asks_where_that_is_wanted(fake, short, kind):
    context = CallContext("r", "u7", chat_id="c7")
    for identity in (IdentityHeaders(), None):
        config = ProviderConfig(
            "acme", kind, fake.openai_url, models=("m",), timeouts=short, identity=identity
        )
        source = open_source(config)
        fake.requests.clear()
        count = await calls(source, context)
        await source.close()
        told = [
            (request.headers.get("X-OpenWebUI-User-Id"), request.headers.get("X-Service-Chat-Id"))
            for request in fake.requests
        ]
        assert told == [("u7", "c7") if identity else (None, None)] * count


async def test_bedrock_needs_its_extra(monkeypatch):
    monkeypatch.setattr(bedrock_client, "is_installed", lambda extra: False)
    source = open_source(ProviderConfig("acme", SourceKind.BEDROCK, "http://acme.test"))
    for _ in range(bedrock_client.MAX_CALLS + 1):
        with pytest.raises(GatewayError, match="the extra 'bedrock' is not installed") as caught:
            await source.list_models()
    assert caught.value.kind is ErrorKind.NOT_CONFIGURED
    await source.close()
