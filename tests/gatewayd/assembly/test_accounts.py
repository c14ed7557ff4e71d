"""Tests for gatewayd.assembly.accounts."""

import stat
from pathlib import Path

from gatewayd.assembly.accounts import configured_permissions, configured_values, signing_secret
from gatewayd.settings import load


def test_signing_secret_is_made_once_and_kept_private(tmp_path: Path) -> None:
    settings = load(None, {"DATA_DIR": str(tmp_path)})
    first = signing_secret(settings)
    assert len(first) >= 32
    assert signing_secret(settings) == first
    (kept,) = tmp_path.iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_configured_secret_is_taken_and_not_written(tmp_path: Path) -> None:
    settings = load(None, {"DATA_DIR": str(tmp_path), "WEBUI_SECRET_KEY": "s" * 40})
    assert signing_secret(settings) == "s" * 40
    assert list(tmp_path.iterdir()) == []


def test_only_permissions_that_are_named_are_configured() -> None:
    assert configured_permissions(load(None, {})) == {}
    settings = load(None, {"USER_PERMISSIONS_FEATURES_API_KEYS": "true"})
    assert configured_permissions(settings) == {"features": {"api_keys": True}}


def test_configured_values_know_where_they_come_from() -> None:
    value = configured_values(load(None, {"ENABLE_API_KEYS": "true"}))["ENABLE_API_KEYS"]
    assert (value.value, value.explicit) == (True, True)
    assert "ENABLE_API_KEYS" in value.origin
