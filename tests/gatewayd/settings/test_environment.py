import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.settings import Settings
from gatewayd.settings.environment import exposed_secret, plugin_environment, process_environment

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]
File = Callable[..., Path]


@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        ("ENV", "dev", "env", "dev"),
        ("HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("PORT", "81", "port", 81),
        ("GATEWAYD_PORT", "81", "port", 81),
        ("ENABLE_API_KEY", "True", "enable_api_keys", True),
        ("GATEWAYD_ENABLE_API_KEY", "true", "enable_api_keys", True),
        ("API_KEY_ALLOWED_ENDPOINTS", "/a, /b,,", "api_keys_allowed_endpoints", ("/a", "/b")),
        (
            "ENABLE_API_KEY_ENDPOINT_RESTRICTIONS",
            "TRUE",
            "enable_api_keys_endpoint_restrictions",
            True,
        ),
        ("OPENAI_API_BASE_URL", "http://a/v1/", "openai_api_base_urls", ("http://a/v1",)),
        ("OPENAI_API_BASE_URLS", ";http://b:1/v1", "openai_api_base_urls", ("", "http://b:1/v1")),
        ("OLLAMA_BASE_URL", "http://a:11434", "ollama_base_urls", ("http://a:11434",)),
        ("OLLAMA_BASE_URLS", "http://a;http://b", "ollama_base_urls", ("http://a", "http://b")),
        ("CORS_ALLOW_ORIGIN", "*", "cors_allow_origin", ("*",)),
        ("AIOHTTP_CLIENT_TIMEOUT", "12.5", "aiohttp_client_timeout", 12.5),
        ("AIOHTTP_CLIENT_STREAM_IDLE_TIMEOUT", "", "aiohttp_client_stream_idle_timeout", None),
        ("GLOBAL_LOG_LEVEL", "debug", "global_log_level", "DEBUG"),
        ("REQUEST_BODY_LIMIT", "4MiB", "request_body_limit", 4 * 2**20),
        ("ENABLE_BUILTIN_MODEL", "False", "enable_builtin_model", "false"),
        (
            "USER_PERMISSIONS_FEATURES_API_KEYS",
            "true",
            "user_permissions_features_api_keys",
            True,
        ),
    ],
)
def test_variables(load_text: Load, variable: str, value: str, name: str, expected: object) -> None:
    settings = load_text("", {variable: value})
    assert getattr(settings, name) == expected
    assert settings.origins[name].text == f"environment {variable}"


def test_the_prefixed_name_wins_then_the_own_name(load_text: Load) -> None:
    both = {"PORT": "1", "GATEWAYD_PORT": "2"}
    assert load_text("", both).port == 2
    both = {"ENABLE_API_KEY": "true", "ENABLE_API_KEYS": "false"}
    assert load_text("", both).enable_api_keys is False


def test_aliases_of_secrets(load_text: Load) -> None:
    settings = load_text("", {"WEBUI_JWT_SECRET_KEY": "j" * 32, "OPENAI_API_KEY": "sk-1"})
    assert settings.webui_secret_key.get_secret_value() == "j" * 32
    assert [key.get_secret_value() for key in settings.openai_api_keys] == ["sk-1"]


def test_names_of_other_programs_are_passed_over(load_text: Load) -> None:
    environ = {"PATH": "/bin", "PORTS": "x", "ENV_FILE": "/none", "PORT_FILE": "/none"}
    assert load_text("", environ) == Settings()


def test_empty_text_means_not_set_where_it_is_no_value(load_text: Load) -> None:
    empty = dict.fromkeys(("PORT", "ENABLE_SIGNUP", "WEBUI_NAME", "JWT_EXPIRES_IN", "LOG_FORMAT"), "")
    settings = load_text("port = 5\nlog_format = 'json'", empty)
    assert settings.port == 5
    assert settings.origins["port"].text.startswith("file ")
    assert settings.webui_name == "gatewayd"
    assert settings.log_format == ""


def test_the_test_suites_own_variable_is_no_setting(load_text: Load) -> None:
    assert load_text("", {"GATEWAYD_REQUIRE_REAL": "1"}) == Settings()


def test_providers_cannot_come_from_the_environment(problems: Problems) -> None:
    [problem] = problems("", {"GATEWAYD_PROVIDERS": "[]", "PROVIDERS": "[]"})
    assert problem.startswith("cannot use environment GATEWAYD_PROVIDERS: there is no such setting")


def test_directories_of_the_service_manager(load_text: Load) -> None:
    environ = {"RUNTIME_DIRECTORY": "/run/x:/run/y", "STATE_DIRECTORY": "/var/lib/x"}
    settings = load_text("", environ)
    assert settings.control_socket == Path("/run/x/control.sock")
    assert settings.data_dir == Path("/var/lib/x")
    assert load_text('data_dir = "/srv/x"', environ).data_dir == Path("/srv/x")


@pytest.mark.parametrize(
    "name", ["webui-secret-key", "webui_secret_key", "webui-jwt-secret-key", "webui_jwt_secret_key"]
)
def test_credentials(load_text: Load, file: File, name: str) -> None:
    path = file("k" * 40 + "\n", f"credentials/{name}")
    file("other", "credentials/somebody-elses")
    settings = load_text("", {"CREDENTIALS_DIRECTORY": str(path.parent), "WEBUI_SECRET_KEY": "e" * 40})
    assert settings.webui_secret_key.get_secret_value() == "k" * 40
    assert settings.origins["webui_secret_key"].text == f"credential {name}"
    assert settings.warnings == ()


def test_a_bad_credential_is_named_without_its_value(problems: Problems, file: File) -> None:
    path = file("hush", "credentials/webui-secret-key")
    assert problems("", {"CREDENTIALS_DIRECTORY": str(path.parent)}) == [
        'cannot use webui-secret-key: expected text of at least 32 bytes, or ""'
    ]


def test_a_missing_credentials_directory(problems: Problems, tmp_path: Path) -> None:
    assert problems("", {"CREDENTIALS_DIRECTORY": str(tmp_path / "no")}) == [
        "cannot read the credentials directory no: No such file or directory"
    ]


def test_named_files(load_text: Load, problems: Problems, file: File, tmp_path: Path) -> None:
    secret = file("f" * 32, "secret")
    environ = {"WEBUI_SECRET_KEY_FILE": str(secret), "GATEWAYD_PORT_FILE": str(file("99\n", "port"))}
    settings = load_text("", environ)
    assert settings.webui_secret_key.get_secret_value() == "f" * 32
    assert settings.port == 99
    assert problems("", {"WEBUI_SECRET_KEY_FILE": str(tmp_path / "no")}) == [
        "no: cannot read no for webui_secret_key: no such file or directory"
    ]


def test_only_secrets_in_open_files_are_warned_of(load_text: Load, file: File) -> None:
    secret = file("f" * 32, "secret", mode=0o644)
    name = file("name", "name", mode=0o644)
    settings = load_text("", {"WEBUI_SECRET_KEY_FILE": str(secret), "WEBUI_NAME_FILE": str(name)})
    assert settings.warnings == (
        f"{secret} holds a secret and everybody may read it (mode 0644, should be 0640)",
    )


def test_the_process_environment_is_copied() -> None:
    copy = process_environment()
    assert copy == dict(os.environ)
    assert copy is not os.environ


def test_secrets_are_hidden_while_plugins_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEYS", "sk-1")
    monkeypatch.delenv("WEBUI_SECRET_KEY", raising=False)
    before = dict(process_environment())
    with exposed_secret("derived"):
        assert process_environment() == {
            **{name: value for name, value in before.items() if name != "OPENAI_API_KEYS"},
            "WEBUI_SECRET_KEY": "derived",
        }
    assert process_environment() == before


def test_processes_of_plugins_see_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "HOME": "/home/a",
        "https_proxy": "http://proxy:3128",
        "HTTP_PROXY": "http://me:secret@proxy:3128",
        "OPENAI_API_KEY": "sk-secret",
        "WEBUI_SECRET_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    shown = plugin_environment()
    assert shown["HOME"] == "/home/a"
    assert shown["https_proxy"] == "http://proxy:3128"
    assert not {"HTTP_PROXY", "OPENAI_API_KEY", "WEBUI_SECRET_KEY"} & set(shown)
