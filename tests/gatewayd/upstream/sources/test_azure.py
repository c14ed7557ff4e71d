import pytest

from gatewayd.catalog.interfaces import CallContext
from gatewayd.errors import GatewayError
from gatewayd.upstream.sources.azure import AzureSource
from gatewayd.upstream.sources.config import ProviderConfig, SourceKind
from tests.fakes.providers.strict.azure import API_VERSION, StrictAzure
from tests.fakes.providers.upstream import json_reply

CONTEXT = CallContext("r1", "u1")
HELLO = {"model": "prod", "messages": [{"role": "user", "content": "hi"}]}


def config_of(azure, short, **fields):
    base = {"base_url": azure.base_url, "key": azure.key, "models": ("prod",), "timeouts": short}
    return ProviderConfig("acme", SourceKind.AZURE, **{**base, **fields})


@pytest.fixture
async def azure():
    async with StrictAzure() as server:
        yield server


@pytest.mark.parametrize("suffix", ["", "/", "/openai", "/openai/v1", "/openai/v1/"])
@pytest.mark.parametrize("version", ["", API_VERSION])
async def test_paths(azure, short, suffix, version):
    source = AzureSource(
        config_of(
            azure, short, base_url=azure.base_url + suffix, api_version=version, families=(("prod", "gpt-5"),)
        )
    )
    (model,) = await source.list_models()
    assert (model.id, model.owned_by, model.family) == ("prod", "azure", "gpt-5")
    completion = await source.complete(HELLO, model, CONTEXT)
    assert completion.body["choices"][0]["message"]["content"] == "Hello from prod"
    events = [event async for chunk in source.stream(HELLO, model, CONTEXT) for event in chunk.events]
    assert "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])
    vectors = await source.embed({"model": "prod", "input": ["a", "b"]}, model, CONTEXT)
    assert len(vectors["data"]) == 2
    answer = await source.forward("POST", "/completions", {"model": "prod", "prompt": "a"})
    await answer.aclose()
    await source.close()
    root = "/openai/deployments/prod" if version else "/openai/v1"
    assert [request.path.removeprefix(root) for request in azure.requests[1:]] == [
        "/chat/completions",
        "/chat/completions",
        "/embeddings",
        "/completions",
    ]


@pytest.mark.parametrize(
    ("version", "path"), [("", "/openai/v1/responses"), (API_VERSION, "/openai/responses")]
)
async def test_the_responses_protocol(azure, short, version, path):
    source = AzureSource(config_of(azure, short, api_version=version, upstream="responses"))
    (model,) = await source.list_models()
    completion = await source.complete(HELLO, model, CONTEXT)
    await source.close()
    assert completion.body["choices"][0]["message"]["content"]
    assert azure.requests[-1].path == path


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"key": "wrong"}, "invalid subscription key"),
        ({"api_version": "1999-01-01"}, "API version"),
    ],
)
async def test_a_wrong_setting_is_found_by_the_list(azure, short, fields, words):
    source = AzureSource(config_of(azure, short, **fields))
    with pytest.raises(GatewayError, match=words):
        await source.list_models()
    await source.close()


async def test_a_deployment_that_is_not_there(azure, short):
    source = AzureSource(config_of(azure, short, models=("gone",), api_version=API_VERSION))
    (model,) = await source.list_models()
    with pytest.raises(GatewayError, match="The API deployment for this resource does not exist"):
        await source.complete({**HELLO, "model": "gone"}, model, CONTEXT)
    await source.close()


def test_deployments_must_be_named(short):
    with pytest.raises(GatewayError, match="name its deployments") as caught:
        ProviderConfig("acme", SourceKind.AZURE, "https://acme.openai.azure.com", timeouts=short)
    assert caught.value.param == "models"


@pytest.mark.parametrize("version", ["", API_VERSION])
async def test_a_field_that_a_deployment_refuses_is_left_out(azure, short, version):
    source = AzureSource(config_of(azure, short, api_version=version))
    (model,) = await source.list_models()
    error = {"message": "Unsupported parameter: 'seed'", "param": "seed", "code": "unsupported_parameter"}
    azure.script(json_reply({"error": error}, 400))
    for _ in range(2):
        await source.complete({**HELLO, "seed": 1}, model, CONTEXT)
    await source.close()
    assert ["seed" in request.json for request in azure.requests[1:]] == [True, False, False]
