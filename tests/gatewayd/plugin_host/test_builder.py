"""Tests for gatewayd.plugin_host.builder."""

from gatewayd.plugins.open_webui.secret_key import derive_secret
from tests.fakes.hosting import Hosting


async def test_a_host_has_all_its_parts(made: Hosting) -> None:
    host = made.host
    assert host.data_dir.name == "plugin-data"
    assert host.secret_key == derive_secret("the secret of the tokens")
    assert (await host.users.find(made.ann.id) or {})["name"] == "ann"
    assert await host.chats.list(made.ann.id, 0, None) == []
    assert await host.files.list(None) == []
    assert set(await host.models.all()) == {"small", "dear"}
    assert await host.knowledge.list(made.ann.id) == []
    assert await host.settings.get("ENABLE_API_KEYS") is False
