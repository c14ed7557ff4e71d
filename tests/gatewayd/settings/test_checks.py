from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.settings import Settings

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (
            "webui_auth_cookie_same_site = 'none'",
            1,
            'cannot use webui_auth_cookie_same_site = "none": browsers drop such a cookie unless '
            "webui_auth_cookie_secure is true",
        ),
        (
            "webui_admin_email = 'root@example.org'",
            1,
            "cannot use webui_admin_email: webui_admin_password is not set",
        ),
        (
            "proxy_protocol = true",
            1,
            "cannot use proxy_protocol: trusted_proxies is empty, so nobody could connect",
        ),
        ("enable_ldap = true", 1, "cannot use enable_ldap: ldap_search_base is not set"),
        ("ldap_app_dn = 'cn=x'", 1, "cannot use ldap_app_dn: ldap_app_password is not set"),
        ("ldap_app_password = 'x'", 1, "cannot use ldap_app_password: ldap_app_dn is not set"),
        (
            "webui_auth_trusted_name_header = 'x-name'",
            1,
            "cannot use webui_auth_trusted_name_header: webui_auth_trusted_email_header is not set",
        ),
        (
            "webui_auth_trusted_email_header = 'Cookie'",
            1,
            "cannot use webui_auth_trusted_email_header = 'cookie': the header has another meaning",
        ),
        (
            "webui_auth_trusted_email_header = 'x-email'\nhost = '0.0.0.0'",
            1,
            "cannot use webui_auth_trusted_email_header: everybody who reaches 0.0.0.0 could send the header;"
            " set trusted_header_networks to the networks of the proxies",
        ),
        (
            "\nwebui_admin_password = 'correct horse'",
            2,
            "cannot use webui_admin_password: webui_admin_email is not set",
        ),
        (
            "openai_api_base_urls = ['http://a']\nopenai_api_keys = ['1', '2']",
            2,
            "cannot use 2 openai_api_keys with 1 openai_api_base_urls: each key needs an address",
        ),
        (
            "[[providers]]\nname = 'openai'\n[[providers]]\nname = 'x'\n",
            None,
            "cannot use the provider name 'openai' twice",
        ),
        (
            "builtin_model_path = '/nonexistent/model.gguf'",
            1,
            "cannot use builtin_model_path = '/nonexistent/model.gguf': there is no such file",
        ),
        (
            "rag_embedding_model = 'bge-m3'\nrag_embedding_engine = 'ollama'",
            2,
            'cannot use rag_embedding_engine = "ollama": rag_ollama_base_url is not set',
        ),
        (
            "content_extraction_engine = 'external'",
            1,
            'cannot use content_extraction_engine = "external": external_document_loader_url is not set',
        ),
        (
            "chunk_overlap = 501",
            1,
            "cannot use chunk_overlap = 501: it is more than half of chunk_size, 1000",
        ),
    ],
)
def test_contradictions_are_refused(problems: Problems, text: str, line: int | None, sentence: str) -> None:
    environ = {} if line else {"OPENAI_API_KEY": "k"}
    assert problems(text, environ) == [f"gatewayd.toml:{line or 1}: {sentence}"]


@pytest.mark.parametrize(
    "text",
    [
        f"scim_enabled = true\nscim_auth_provider = 'x'\nscim_token = '{'t' * 32}'",
        f"scim_enabled = true\nscim_auth_provider = 'x'\nscim_token = ['{'t' * 32}', '{'u' * 32}']",
        "scim_token = 'short'",
        # Tokens may be in the database.
        "scim_enabled = true\nscim_auth_provider = 'x'\nscim_token = ''",
        "webui_auth_cookie_same_site = 'none'\nwebui_auth_cookie_secure = true",
        "openai_api_keys = ['1']",
        "openai_api_base_urls = ['', 'http://b']\nopenai_api_keys = ['1', '2']",
        "env = 'dev'\nhost = '::1'",
        "env = 'dev'\nhost = 'localhost'",
        "enable_api_keys_endpoint_restrictions = true\napi_keys_allowed_endpoints = ['/api/models']",
        "rag_embedding_engine = 'openai'\nrag_openai_api_base_url = 'http://127.0.0.1:1/v1'",
        "chunk_size = 500\nchunk_overlap = 250",
    ],
)
def test_good_combinations_pass_silently(load_text: Load, text: str) -> None:
    assert load_text(text).warnings == ()


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "enable_initial_admin_signup = true\nhost = '0.0.0.0'",
            "the first client on 0.0.0.0 may become administrator: enable_initial_admin_signup is true",
        ),
        (
            "env = 'dev'\nhost = '0.0.0.0'",
            "/docs and /openapi.json are public on 0.0.0.0: env is dev",
        ),
        (
            "scim_enabled = true\nscim_auth_provider = 'x'\nscim_token = 'short'",
            "scim_token is shorter than 32 characters, a random one is harder to guess",
        ),
        (
            f"scim_enabled = true\nscim_auth_provider = 'x'\nscim_token = '{'t' * 32} short'",
            "scim_token is shorter than 32 characters, a random one is harder to guess",
        ),
        (
            f"scim_enabled = true\nscim_token = '{'t' * 32}'",
            "SCIM requests with an externalId are refused: scim_auth_provider is not set",
        ),
        (
            "enable_ldap = true\nldap_search_base = 'dc=x'\nldap_use_tls = false",
            "passwords can be read on the way to the directory: ldap_use_tls is false",
        ),
        (
            "enable_ldap = true\nldap_search_base = 'dc=x'\nldap_validate_cert = false",
            "passwords can be read on the way to the directory: its certificate is not checked",
        ),
        (
            "enable_api_keys_endpoint_restrictions = true",
            "API keys cannot be used: enable_api_keys_endpoint_restrictions is true and"
            " api_keys_allowed_endpoints is empty",
        ),
        (
            "api_keys_allowed_endpoints = ['/api/models', 'api/chat']",
            "'api/chat' in api_keys_allowed_endpoints matches no request: it does not begin with a slash",
        ),
    ],
)
def test_warnings(load_text: Load, text: str, warning: str) -> None:
    assert load_text(text).warnings == (warning,)


def test_a_model_file_that_is_there(load_text: Load, tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.touch()
    assert load_text(f"builtin_model_path = '{model}'").builtin_model_path == model
