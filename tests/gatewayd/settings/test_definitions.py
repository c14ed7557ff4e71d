from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ByteSize, SecretStr
from pydantic.fields import FieldInfo

from gatewayd.settings import Settings, changed_settings, definitions
from gatewayd.settings.definitions import expectation, format_toml, names_by_alias, table_fields
from gatewayd.settings.fields import CATEGORIES


def test_there_is_one_definition_for_each_setting() -> None:
    assert set(definitions()) == set(Settings.model_fields)


def test_the_order_follows_the_categories() -> None:
    order = [each.category for each in definitions().values()]
    assert order == sorted(order, key=CATEGORIES.index)
    assert set(order) == set(CATEGORIES)


def test_each_description_is_one_sentence() -> None:
    for each in definitions().values():
        assert each.description.endswith("."), each.name
        assert each.description[0].isupper() or each.description[0] == "/", each.name
        assert ". " not in each.description, each.name


def test_no_two_settings_share_a_name_a_variable_or_a_credential() -> None:
    for listed in ("names", "variables", "file_variables", "credentials"):
        every = [name for each in definitions().values() for name in set(getattr(each, listed))]
        assert len(every) == len(set(every)), listed
    variables = {name for each in definitions().values() for name in each.variables}
    assert variables.isdisjoint(name for each in definitions().values() for name in each.file_variables)


def test_names_of_a_setting() -> None:
    each = definitions()["enable_api_keys"]
    assert each.variables == (
        "GATEWAYD_ENABLE_API_KEYS",
        "GATEWAYD_ENABLE_API_KEY",
        "ENABLE_API_KEYS",
        "ENABLE_API_KEY",
    )
    assert each.file_variables[-1] == "ENABLE_API_KEY_FILE"
    assert each.credentials == ("enable-api-keys", "enable_api_keys", "enable-api-key", "enable_api_key")
    assert names_by_alias()["enable_api_key"] == "enable_api_keys"


def test_common_names_name_no_file() -> None:
    assert definitions()["env"].file_variables == ("GATEWAYD_ENV_FILE",)


def test_a_setting_of_its_own_names_the_file_of_scim_tokens() -> None:
    assert definitions()["scim_token"].file_variables == ()
    assert definitions()["scim_token_file"].variables == ("GATEWAYD_SCIM_TOKEN_FILE", "SCIM_TOKEN_FILE")


def test_secrets_are_known_as_such() -> None:
    assert {each.name for each in definitions().values() if each.secret} == {
        "backup_passphrase",
        "database_url",
        "webui_secret_key_previous",
        "ldap_app_password",
        "metrics_token",
        "webui_secret_key",
        "webui_admin_password",
        "scim_token",
        "openai_api_keys",
        "providers",
        "external_document_loader_api_key",
        "audit_forward_url",
        "audit_forward_secret",
        "file_store_access_key",
        "file_store_secret_key",
        "redis_url",
        "rag_openai_api_key",
        "rag_ollama_api_key",
        "rag_external_reranker_api_key",
        "tool_server_connections",
        "oauth_client_secret",
        "google_client_secret",
        "microsoft_client_secret",
        "github_client_secret",
        "feishu_client_secret",
        "oauth_providers",
    }


def test_changed_names_what_differs(load_text: Callable[..., Settings]) -> None:
    old = load_text("port = 1\nwebui_name = 'same'\nopenai_api_keys = ['a']")
    new = load_text(
        "port = 2\nwebui_name = 'same'\nopenai_api_keys = ['b']\nuser_permissions_chat_delete = false\n"
        "[[providers]]\nname = 'x'"
    )
    assert changed_settings(old, new) == [
        "port",
        "user_permissions_chat_delete",
        "openai_api_keys",
        "providers",
    ]
    assert changed_settings(old, old) == []


def test_an_unchanged_configuration_has_no_changes(load_text: Callable[..., Settings]) -> None:
    text = "[[providers]]\nname = 'x'\nkey = 'k'"
    assert changed_settings(load_text(text), load_text("# moved\n" + text)) == []


def test_what_a_reload_applies() -> None:
    table = definitions()
    assert table["enable_signup"].reloadable
    assert table["scim_enabled"].reloadable
    assert table["scim_token"].reloadable
    assert table["user_permissions_chat_delete"].reloadable
    assert not table["port"].reloadable
    assert not table["database_url"].reloadable


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, '""'),
        (30.0, "30"),
        (0.5, "0.5"),
        (8080, "8080"),
        (ByteSize(32 * 2**20), '"32MiB"'),
        ((), "[]"),
        (("a", "b"), '["a", "b"]'),
        (SecretStr("x"), '"x"'),
        (Path("/a"), '"/a"'),
        ('a"b\\', '"a\\"b\\\\"'),
    ],
)
def test_toml(value: object, text: str) -> None:
    assert format_toml(value) == text


def test_toml_of_something_else() -> None:
    with pytest.raises(TypeError):
        format_toml(object())


def test_both_ends_of_a_range_are_told() -> None:
    assert definitions()["send_timeout"].expects == "a number of seconds, greater than 0, at most 3600"


def test_a_setting_without_an_expectation_cannot_be_declared() -> None:
    with pytest.raises(TypeError, match="no expectation"):
        expectation(FieldInfo(annotation=int))


def test_provider_keys_are_described() -> None:
    described = {name: (expects, text) for name, expects, text in table_fields("providers")}
    assert described["name"] == ("one line of text, 1 to 64 characters", "Name in messages and logs.")
    assert all(text.endswith(".") for _, text in described.values())
