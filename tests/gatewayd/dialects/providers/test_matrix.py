"""What four kinds of clients send, changed for each family, is refused by none of the strict stand-ins."""

import pytest

from gatewayd.dialects.anthropic.dialect import without_foreign
from gatewayd.dialects.providers.adaptation import adapt
from gatewayd.dialects.providers.family import family_of
from gatewayd.dialects.providers.table import find_rules
from tests.fakes.providers.client_requests import CLIENTS, is_converted, request_of
from tests.fakes.providers.strict import makers, openai
from tests.fakes.providers.strict.base import Body, StrictRefusalError

ONLY_IN_RESPONSES = ("gpt-6-astra", "gpt-6.1-sol")
"""Models that take tools in Responses only."""

OPENAI = [(client, model) for client in CLIENTS for model in openai.FAMILIES]
OTHERS = [
    (client, maker, model)
    for client in CLIENTS
    for maker, models in makers.MAKERS.items()
    for model in models
]


def adapted(
    client: str, model: str, maker: str = "", host: str = "", family: str = ""
) -> tuple[Body, list[str]]:
    body = request_of(client, model)
    rules = find_rules(family_of("openai", host, model, family, maker))
    changed, warnings = adapt(body, rules, is_converted=is_converted(client))
    plain = without_foreign(changed) if is_converted(client) else dict(changed)
    if not plain.get("stream"):
        plain.pop("stream_options", None)
    return plain, list(warnings)


@pytest.mark.parametrize("host", ["api.openai.com", "unknown.test"])
@pytest.mark.parametrize(("client", "model"), OPENAI)
def test_families_of_openai(client: str, model: str, host: str) -> None:
    body, _ = adapted(client, model, host=host)
    if model in ONLY_IN_RESPONSES:
        body.pop("tools", None)
        body.pop("tool_choice", None)
        body.pop("parallel_tool_calls", None)
    for check in openai.checks(model):
        check(body)


@pytest.mark.parametrize(("client", "maker", "model"), OTHERS)
def test_other_makers(client: str, maker: str, model: str) -> None:
    body, _ = adapted(client, model, maker=maker)
    makers.MAKERS[maker][model](body)


@pytest.mark.parametrize("client", CLIENTS)
def test_deployments_of_azure(client: str) -> None:
    host = "acme.openai.azure.com"
    for check in openai.checks("gpt-5.2"):
        check(adapted(client, "our-deployment", host=host, family="gpt-5.2")[0])
    openai.azure_texts(adapted(client, "our-deployment", host=host)[0])
    openai.azure_mistral(adapted(client, "mistral-large-2512", host=host)[0])


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.6-sol", "gpt-4o-2024-08-06"])
def test_the_stand_in_refuses_what_is_not_changed(model: str) -> None:
    with pytest.raises(StrictRefusalError):
        for check in openai.checks(model):
            check({**request_of("ollama", model)})


@pytest.mark.parametrize(
    ("maker", "model"), [(maker, model) for maker, models in makers.MAKERS.items() for model in models]
)
def test_each_stand_in_refuses_one_of_the_clients(maker: str, model: str) -> None:
    refused = 0
    for client in CLIENTS:
        body = request_of(client, model)
        try:
            makers.MAKERS[maker][model](without_foreign(body) if is_converted(client) else body)
        except StrictRefusalError:
            refused += 1
    assert refused
