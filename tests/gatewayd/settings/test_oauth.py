from collections.abc import Callable
from pathlib import Path

import pytest

from gatewayd.assembly.identity import configured_identity_providers
from gatewayd.settings import Settings

Load = Callable[..., Settings]
Problems = Callable[..., list[str]]

TABLE = '[[oauth_providers]]\nname = "okta"\nissuer = "https://x.okta.com/"\nclient_id = "c"\n'
SIX = {
    "GOOGLE_CLIENT_ID": "g",
    "GOOGLE_CLIENT_SECRET": "gs",
    "GOOGLE_OAUTH_AUTHORIZE_PARAMS": '{"hd": "example.org", "prompt": "select_account"}',
    "MICROSOFT_CLIENT_ID": "m",
    "MICROSOFT_CLIENT_TENANT_ID": "11-22",
    "GITHUB_CLIENT_ID": "h",
    "FEISHU_CLIENT_ID": "f",
    "FEISHU_CLIENT_SECRET": "fs",
    "OAUTH_CLIENT_ID": "o",
    "OPENID_PROVIDER_URL": "https://login.example.org/.well-known/openid-configuration",
    "OAUTH_PROVIDER_NAME": "Example",
    "OAUTH_AUDIENCE": "api",
    "OAUTH_PROVISIONING_CLAIM": "guid",
    "OAUTH_ALLOWED_ROLES": "staff, boss",
    "OAUTH_BLOCKED_GROUPS": '["a", "b"]',
    "ENABLE_OAUTH_SIGNUP": "true",
    "OAUTH_GROUP_DEFAULT_SHARE": "false",
}


def test_the_names_of_open_webui_make_providers(load_text: Load) -> None:
    found = configured_identity_providers(load_text(TABLE, SIX))
    google, microsoft, github, feishu, oidc, okta = found
    assert [each.name for each in found] == ["google", "microsoft", "github", "feishu", "oidc", "okta"]
    assert (feishu.client_secret, feishu.claims.subject) == ("fs", "open_id")
    assert (feishu.scopes, feishu.rules.trust_email) == ("contact:user.base:readonly", False)
    assert (google.client_secret, google.required_claims) == ("gs", (("hd", "example.org"),))
    assert microsoft.discovery_url.startswith("https://login.microsoftonline.com/11-22/v2.0/.well-known/")
    assert (microsoft.claims.provisioning, microsoft.rules.trust_email) == ("oid", True)
    assert (github.claims.subject, github.scopes) == ("id", "user:email")
    assert (oidc.shown_label, oidc.authorize_params) == ("Example", (("audience", "api"),))
    assert (oidc.claims.provisioning, oidc.rules.trust_email) == ("guid", False)
    assert oidc.rules.roles.allowed == ("staff", "boss")
    assert (oidc.rules.groups.unmanaged, oidc.rules.groups.share) == (("a", "b"), False)
    assert (okta.issuer, okta.rules.sign_up, okta.trusted_clients) == ("https://x.okta.com/", True, ())
    assert okta.discovery_url == "https://x.okta.com/.well-known/openid-configuration"
    assert configured_identity_providers(load_text(TABLE, {**SIX, "ENABLE_OAUTH": "false"})) == ()
    assert configured_identity_providers(load_text("")) == ()


def test_the_secret_of_a_table_comes_from_a_file(load_text: Load, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret words\n")
    (tmp_path / "secret").chmod(0o600)
    settings = load_text(f'{TABLE}client_secret_file = "secret"')
    (okta,) = configured_identity_providers(settings)
    assert okta.client_secret == "s3cret words"
    assert "s3cret" not in repr(settings) + repr(okta)


@pytest.mark.parametrize(
    ("text", "environ", "problem"),
    [
        ('oauth_client_id = "x"', {}, "openid_provider_url is not set"),
        ('openid_provider_url = "https://x"', {}, "expected an address with /.well-known"),
        ('microsoft_client_id = "x"', {}, "microsoft_client_tenant_id is not set"),
        ("", {"MICROSOFT_CLIENT_TENANT_ID": "common"}, "expected the id of one tenant"),
        ("enable_oauth_token_exchange = true", {}, "oauth_token_exchange_trusted_client_ids is empty"),
        (TABLE + TABLE, {}, "the provider name 'okta': it is taken"),
        (TABLE.replace("okta", "google", 1), {}, "'google'"),
        (TABLE.replace("okta", "a/b", 1), {}, "oauth_providers[0].name"),
        (TABLE.replace("https", "ftp"), {}, "oauth_providers[0].issuer"),
        (TABLE + 'secret = "s"', {}, "unknown key oauth_providers[0].secret"),
        (TABLE + 'client_secret_file = "absent"', {}, "cannot read client_secret_file 'absent'"),
        ("", {"OAUTH_AUTHORIZE_PARAMS": "[1]"}, "OAUTH_AUTHORIZE_PARAMS"),
        ("", {"OAUTH_AUTHORIZE_PARAMS": "{"}, "OAUTH_AUTHORIZE_PARAMS"),
        ("", {"OAUTH_CODE_CHALLENGE_METHOD": "plain"}, "OAUTH_CODE_CHALLENGE_METHOD"),
        ("", {"OAUTH_BLOCKED_GROUPS": "[1]"}, "OAUTH_BLOCKED_GROUPS"),
    ],
)
def test_contradictions_are_refused(
    problems: Problems, text: str, environ: dict[str, str], problem: str
) -> None:
    (found,) = problems(text, environ)
    assert problem in found


def test_invented_names_are_reported(load_text: Load) -> None:
    settings = load_text("oauth_auto_redirect = true", {"WEBUI_OIDC_CLIENT_ID": "x"})
    assert "WEBUI_OIDC_CLIENT_ID is not used, did you mean OAUTH_CLIENT_ID?" in settings.warnings
    assert "oauth_auto_redirect has no effect while enable_login_form is true" in settings.warnings
