import pytest

from gatewayd.upstream.config import ProviderConfig, SourceKind
from gatewayd.upstream.sources import open_source

CASES = [
    (SourceKind.OPENAI, "/v1/models"),
    (SourceKind.ANTHROPIC, "/v1/models"),
    (SourceKind.OLLAMA, "/api/tags"),
]


@pytest.mark.parametrize(("kind", "path"), CASES)
async def test_each_kind_lists_its_models(fake, kind, path):
    base_url = fake.openai_url if kind is SourceKind.OPENAI else fake.base_url
    source = open_source(ProviderConfig("acme", kind, base_url, prefix="acme/"))
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
    await open_source(ProviderConfig("acme", kind, "http://acme.test"), client).close()
    assert client.closed
