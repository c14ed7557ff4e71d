"""Tests for gatewayd.plugin_host.settings."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import ByteSize, SecretStr

from gatewayd.plugin_host.settings import SettingsForPlugins, derive_secret
from gatewayd.settings import Settings
from tests.fakes.accounts.services import Accounts


def settings(**values: Any) -> SettingsForPlugins:
    return SettingsForPlugins(lambda: values, Accounts().runtime)


async def test_plain_values() -> None:
    shown = await settings(
        rag_top_k=4,
        enable_x=True,
        task_model="small",
        data_dir=Path("/data"),
        request_body_limit=ByteSize(2048),
        weight=0.5,
        nothing=None,
        names=("a", "b"),
    ).all()
    assert {name: shown[name] for name in ("RAG_TOP_K", "ENABLE_X", "TASK_MODEL", "DATA_DIR", "WEIGHT")} == {
        "RAG_TOP_K": 4,
        "ENABLE_X": True,
        "TASK_MODEL": "small",
        "DATA_DIR": "/data",
        "WEIGHT": 0.5,
    }
    assert (shown["NAMES"], shown["NOTHING"]) == (["a", "b"], None)
    assert type(shown["REQUEST_BODY_LIMIT"]) is int


async def test_no_secrets() -> None:
    shown = await settings(
        database=SecretStr("x"),
        some_keys=(SecretStr("x"), SecretStr("y")),
        own_api_key="x",
        scim_token_file=Path("/x"),
        pip_options="--index-url https://me:x@example.org/simple",
        urls=("https://example.org", "https://me:x@example.org"),
        odd=timedelta(1),
    ).all()
    secret = {"DATABASE", "SOME_KEYS", "OWN_API_KEY", "SCIM_TOKEN_FILE", "PIP_OPTIONS", "URLS", "ODD"}
    assert not secret & set(shown)


async def test_what_was_set_at_run_time_wins() -> None:
    accounts = Accounts()
    await accounts.runtime.set({"WEBUI_URL": "https://set.example.org"}, by="test")
    values = SettingsForPlugins(lambda: {"webui_url": "https://configured.example.org"}, accounts.runtime)
    assert await values.get("WEBUI_URL") == "https://set.example.org"
    assert await values.get("ENABLE_API_KEYS") is False
    assert await values.get("NONE_SUCH") is None


async def test_none_of_the_real_settings_shows_a_secret() -> None:
    secret = SecretStr("0123456789abcdef" * 4)
    given = {"webui_secret_key": secret, "database_url": secret, "openai_api_keys": (secret,)}
    real = Settings().model_copy(update=given)
    shown = await SettingsForPlugins(lambda: dict(real), Accounts().runtime).all()
    assert shown["RAG_TOP_K"] == real.rag_top_k
    assert "0123456789abcdef" not in str(shown)
    assert not {"WEBUI_SECRET_KEY", "DATABASE_URL", "OPENAI_API_KEYS", "SCIM_TOKEN"} & set(shown)


def test_the_secret_of_plugins_is_hkdf_and_not_the_secret_of_the_gateway() -> None:
    known = HKDF(SHA256(), 32, None, b"gatewayd plugins").derive(b"top secret").hex()
    assert derive_secret("top secret") == known
    assert derive_secret("top secret2") != known
    assert derive_secret("") == ""
