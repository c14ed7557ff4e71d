"""Tests for gatewayd.assembly.identity."""

import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.assembly.gateway import assemble, reload
from gatewayd.settings import Settings, load

OIDC = {
    "OAUTH_CLIENT_ID": "gateway",
    "OPENID_PROVIDER_URL": "https://login.example.org/.well-known/openid-configuration",
    "WEBUI_URL": "https://ai.example.org/",
}


def settings_of(folder: Path, **more: str) -> Settings:
    environ = {"DATA_DIR": str(folder), "ENABLE_BUILTIN_MODEL": "false", **more}
    return load(None, environ, default_file=None)


async def test_a_reload_brings_providers_and_takes_them_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gatewayd.assembly.identity")
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_of(tmp_path), stack)
        identity = gateway.services.identity
        assert (identity.labels(), identity.redirects()) == ({}, False)
        lone = {"OAUTH_AUTO_REDIRECT": "true", "ENABLE_LOGIN_FORM": "false"}
        await reload(gateway, settings_of(tmp_path, **OIDC, **lone))
        assert (identity.labels(), identity.redirects()) == ({"oidc": "SSO"}, True)
        told = [record for record in caplog.records if record.getMessage() == "identity provider"]
        addresses = [record.__dict__["redirect_address"] for record in told]
        assert addresses == ["https://ai.example.org/oauth/oidc/callback"]
        off = {"ENABLE_OAUTH": "false", "ENABLE_OAUTH_BACKCHANNEL_LOGOUT": "false"}
        await reload(gateway, settings_of(tmp_path, **OIDC, **off))
        assert (identity.labels(), identity.switches.accepts_logout) == ({}, False)
