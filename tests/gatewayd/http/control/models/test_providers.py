"""`/v1/providers`."""

import logging

import pytest
from pydantic import ValidationError

from gatewayctl.wire import routes
from gatewayctl.wire.upkeep.providers import NewProviderKey
from gatewayd.catalog.providers.records import ProviderFamily
from tests.fakes.daemons.control_documents import refused
from tests.fakes.daemons.control_socket import Control

KEY = NewProviderKey(key="canary-new-key")


def keys(control: Control) -> list[str]:
    return [each.key for each in control.providers.show(ProviderFamily.OPENAI).providers]


async def test_a_key_is_replaced_and_audited_without_it(
    control: Control, caplog: pytest.LogCaptureFixture
) -> None:
    client, call = control.client, control.call
    dry = await call(client.call, routes.REPLACE_PROVIDER_KEY, "acme", body=KEY, dry_run=True)
    assert (dry.name, dry.base_url, dry.models, dry.dry_run) == ("acme", "https://acme.test/v1", 2, True)
    assert keys(control) == ["file-key", "canary-stored-key"]
    with caplog.at_level(logging.INFO):
        made = await call(client.call, routes.REPLACE_PROVIDER_KEY, "acme", body=KEY)
    assert (made.outcome, made.dry_run) == ("changed", False)
    assert keys(control) == ["file-key", "canary-new-key"]
    assert "secret rotate-provider" in caplog.text
    assert "canary" not in caplog.text
    assert "canary" not in made.model_dump_json()


async def test_refusals(control: Control) -> None:
    client = control.client
    for name, kind in (("none", "not_found"), ("hosted", "conflict")):
        failure = await refused(control, client.call, routes.REPLACE_PROVIDER_KEY, name, body=KEY)
        assert failure.kind == kind
    spaced = NewProviderKey(key="two words")
    failure = await refused(control, client.call, routes.REPLACE_PROVIDER_KEY, "acme", body=spaced)
    assert (failure.kind, failure.param) == ("invalid_request", "key")
    for key in ("", "x" * 4097):
        with pytest.raises(ValidationError):
            NewProviderKey(key=key)
    assert keys(control) == ["file-key", "canary-stored-key"]
