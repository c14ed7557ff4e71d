from collections.abc import Callable

import pytest

from gatewayd.settings.layers import SettingEntry, SettingLayer, from_environment
from gatewayd.settings.validation import check_layer

Problems = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port = true", "port = true: expected a whole number, from 0 to 65535"),
        ("port = 80.5", "port = 80.5: expected a whole number, from 0 to 65535"),
        ("port = -1", "port = -1: expected a whole number, from 0 to 65535"),
        ("port = []", "port: expected a whole number, from 0 to 65535"),
        ("enable_signup = 1", "enable_signup = 1: expected true or false"),
        ("enable_signup = 'perhaps'", "enable_signup = 'perhaps': expected true or false"),
        ("drain_timeout = inf", "drain_timeout = inf: expected a number of seconds, at least 0"),
        ("drain_timeout = true", "drain_timeout = true: expected a number of seconds, at least 0"),
        ("env = 'test'", 'env = \'test\': expected "dev" or "prod"'),
        (f"host = '{'x' * 256}'", f"host = '{'x' * 60}...': expected one line of text"),
        ("webui_name = 7", "webui_name = 7: expected one line of text, 1 to 128 characters"),
        (
            "jwt_expires_in = '-1'",
            "jwt_expires_in = '-1': "
            'expected a duration such as "4w" (ms, s, m, h, d, w), at least a second',
        ),
        (
            "trusted_proxies = ['10.0.0.0/8', '10.0.0.1/8']",
            "trusted_proxies[1] = '10.0.0.1/8': expected a list of networks or addresses such as 10.0.0.0/8 "
            "separated by ','",
        ),
        ("webui_secret_key = 'hush'", 'webui_secret_key: expected text of at least 32 bytes, or ""'),
        ("openai_api_keys = ['two words']", "openai_api_keys[0]: expected a list of keys separated by ';'"),
        ("data_dir = 5", "data_dir = 5: expected an absolute path"),
        ("providers = 5", "providers = 5: expected [[providers]] tables"),
        ("providers = [5]", "providers[0] = 5: expected [[providers]] tables"),
        (f"env = '{'x' * 100}'", f'env = \'{"x" * 60}...\': expected "dev" or "prod"'),
    ],
)
def test_wrong_values(problems: Problems, text: str, problem: str) -> None:
    assert problems(f"\n{text}\n") == [f"gatewayd.toml:2: cannot use {problem}"]


def test_provider_tables(problems: Problems) -> None:
    text = """
[[providers]]
name = "good"
[[providers]]
kind = "opnai"
base_url = "ftp://x"
timeout = 0
nmae = "x"
key = "not one"
models = [
  "a",
  2,
]
"""
    assert problems(text) == [
        "gatewayd.toml:4: cannot use providers[1]: expected the key name",
        "gatewayd.toml:5: cannot use providers[1].kind = 'opnai': "
        'expected "openai", "anthropic", "ollama", "azure", "gemini" or "bedrock"',
        "gatewayd.toml:6: cannot use providers[1].base_url = 'ftp://x': "
        "expected an http:// or https:// address without query or password",
        "gatewayd.toml:7: cannot use providers[1].timeout = 0: "
        'expected a number of seconds, or "" for the general setting, greater than 0',
        "gatewayd.toml:8: unknown key providers[1].nmae, did you mean name?",
        "gatewayd.toml:9: cannot use providers[1].key: expected one word of ASCII characters",
        "gatewayd.toml:10: cannot use providers[1].models = 2: expected a list of texts",
    ]


def test_no_message_holds_a_secret(problems: Problems) -> None:
    text = """
webui_secret_key = "s3cr3t"
scim_token = "s3cr3t s3cr3t s3cr3t"
openai_api_keys = ["s3cr3t s3cr3t"]
database_url = "mysql://u:s3cr3t@h/n"
[[providers]]
name = "x"
key = "s3cr3t s3cr3t"
"""
    found = problems(text)
    assert len(found) == 5
    assert "s3cr3t" not in "".join(found)


def test_the_sound_part_of_a_layer_is_kept() -> None:
    entries = {
        name: SettingEntry(value, name.upper(), from_environment(name.upper()))
        for name, value in {"port": "x", "host": "h", "webui_name": ""}.items()
    }
    rest, found, bad = check_layer(SettingLayer(entries))
    assert set(rest.entries) == {"host"}
    assert [problem.key for problem in found] == ["PORT"]
    assert bad == {"port"}
