"""The metrics of a whole gateway, with a database and an access log."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from gatewayd.assembly.gateway import Gateway, assemble, reload
from gatewayd.assembly.metrics.readers import make_exposition
from gatewayd.errors import GatewayError
from gatewayd.metering.records import CallOutcome, TokenUsage
from gatewayd.observe.metrics.families import FAMILIES
from gatewayd.settings import Settings, load
from tests.fakes.providers.models import make_actor
from tests.fakes.storage.migrated import migrated_copy

# What needs a server, a journal, a document or a request of another kind.
ABSENT = {
    "gatewayd_database_connections",
    "gatewayd_plugin_calls_total",
    "gatewayd_plugin_failures_total",
}


def settings_of(folder: Path, **given: str) -> Settings:
    return load(None, {"DATA_DIR": str(folder), "ENABLE_BUILTIN_MODEL": "false", "PORT": "0", **given})


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    migrated_copy(tmp_path)
    async with AsyncExitStack() as stack:
        given = {"ACCESS_LOG": "json", "ACCESS_LOG_PATH": str(tmp_path / "access.log")}
        yield await assemble(settings_of(tmp_path, **given), stack)


async def test_every_family_is_read_from_where_it_is_known(gateway: Gateway, tmp_path: Path) -> None:
    services = gateway.services
    meter = services.catalog.meter
    for error_kind, outcome in (("", CallOutcome.ANSWERED), ("timeout", CallOutcome.FAILED)):
        call = meter.begin(make_actor(), "m", "chat", is_stream=True)
        call.source, call.attempts, call.error_kind = "p", 2, error_kind
        meter.first(call)
        meter.finish(call, outcome, TokenUsage(prompt=3, completion=2))
    async with TestClient(TestServer(gateway.public)) as client:
        assert (await client.get("/metrics")).status == 404
        text = (await make_exposition(services).render()).decode()
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    missing = {family.name for family in FAMILIES} - {
        name.removesuffix("_bucket") for name in found if not name.startswith("process_")
    }
    assert missing == ABSENT
    assert found["gatewayd_database_up"] == 1
    assert found["gatewayd_model_calls_in_flight"] == 0
    services.monitoring.access_log.close()
    lines = [json.loads(line) for line in (tmp_path / "access.log").read_text().splitlines()]
    assert [(line["route"], line["status"]) for line in lines] == [("/metrics", 404)]


async def test_a_reload_with_an_access_log_that_cannot_be_opened_changes_nothing(
    gateway: Gateway, tmp_path: Path
) -> None:
    before = gateway.services.settings
    bad = {"ACCESS_LOG": "text", "ACCESS_LOG_PATH": str(tmp_path / "none" / "access.log")}
    with pytest.raises(GatewayError, match="access_log_path"):
        await reload(gateway, settings_of(tmp_path, **bad, WEBUI_NAME="other"))
    assert gateway.services.settings is before
