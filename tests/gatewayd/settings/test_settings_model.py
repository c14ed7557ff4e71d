from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError

from gatewayd.accounts.runtime_settings import DEFINITIONS
from gatewayd.settings import ConfiguredRuntime, Settings
from gatewayd.storage.engine.location import parse

Load = Callable[..., Settings]


def test_the_defaults_are_safe() -> None:
    settings = Settings()
    assert (settings.env, settings.host, settings.port) == ("prod", "127.0.0.1", 8080)
    assert settings.cors_allow_origin == ()
    assert settings.trusted_proxies == ()
    assert settings.enable_api_keys is False
    assert settings.default_user_role == "pending"
    assert settings.user_permissions_features_api_keys is False


def test_the_environment_of_the_process_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "99")
    assert Settings().port == 8080


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1


def test_settings_show_no_secret(load_text: Load) -> None:
    settings = load_text(
        f"webui_secret_key = '{'s3cr3t' * 8}'\ndatabase_url = 'postgresql://u:s3cr3t@h/n'\n"
        "openai_api_keys = ['s3cr3t']\n[[providers]]\nname = 'x'\nkey = 's3cr3t'"
    )
    assert "s3cr3t" not in repr(settings)
    assert "s3cr3t" not in str(settings.model_dump())


def test_the_database_is_a_file_in_the_data_directory(load_text: Load) -> None:
    settings = load_text("data_dir = '/srv/50% off?#'")
    assert parse(settings.database_location()).path == Path("/srv/50% off?#/gatewayd.db")
    settings = load_text("database_url = 'sqlite:////srv/x.db'")
    assert parse(settings.database_location()).path == Path("/srv/x.db")
    url = "postgresql://u:p@h/n"
    assert load_text(f"database_url = '{url}'").database_location() == url


def test_types(load_text: Load) -> None:
    settings = load_text(
        'trusted_proxies = ["10.0.0.0/8", "::1"]\ndrain_timeout = 5\nrequest_body_limit = "4MiB"\n'
        "enable_builtin_model = true\nwebui_url = 'https://x.example.org/'\ncustom_api_key_header = 'X-Key'"
    )
    assert settings.trusted_proxies == (ip_network("10.0.0.0/8"), ip_network("::1"))
    assert settings.drain_timeout == 5.0
    assert settings.request_body_limit == 4 * 2**20
    assert settings.enable_builtin_model == "true"
    assert settings.webui_url == "https://x.example.org"
    assert settings.custom_api_key_header == "x-key"


def test_all_providers(load_text: Load) -> None:
    settings = load_text(
        "openai_api_base_urls = ['', 'http://b/v1', 'http://c/v1']\nopenai_api_keys = ['1', '', '3']\n"
        "ollama_base_urls = ['http://o:1', 'http://o:2']\n"
        "[[providers]]\nname = 'claude'\nkind = 'anthropic'"
    )
    found = [
        (provider.name, provider.kind, provider.base_url, provider.key.get_secret_value())
        for provider in settings.all_providers()
    ]
    assert found == [
        ("openai", "openai", "https://api.openai.com/v1", "1"),
        ("openai-2", "openai", "http://b/v1", ""),
        ("openai-3", "openai", "http://c/v1", "3"),
        ("claude", "anthropic", "https://api.anthropic.com", ""),
        ("ollama", "ollama", "http://o:1", ""),
        ("ollama-2", "ollama", "http://o:2", ""),
    ]


def test_lists_can_be_switched_off(load_text: Load) -> None:
    settings = load_text(
        "enable_openai_api = false\nenable_ollama_api = false\nopenai_api_keys = ['1']\n"
        "ollama_base_urls = ['http://o']\n[[providers]]\nname = 'a'"
    )
    assert [provider.name for provider in settings.all_providers()] == ["a"]


def test_runtime_values(load_text: Load) -> None:
    values = load_text(
        "api_keys_allowed_endpoints = ['/a', '/b']", {"ENABLE_API_KEY": "true"}
    ).runtime_values()
    assert set(values) <= {definition.name for definition in DEFINITIONS}
    assert values["ENABLE_API_KEYS"] == ConfiguredRuntime(True, "environment ENABLE_API_KEY", explicit=True)
    assert values["ENABLE_SIGNUP"] == ConfiguredRuntime(True, "default", explicit=False)
    assert values["API_KEYS_ALLOWED_ENDPOINTS"].value == "/a,/b"
    assert values["API_KEYS_ALLOWED_ENDPOINTS"].origin.endswith("gatewayd.toml line 1")
    assert values["JWT_EXPIRES_IN"].value == "4w"


def test_origins_cannot_be_changed(load_text: Load) -> None:
    with pytest.raises(TypeError):
        load_text().origins["port"] = None  # type: ignore[index]
