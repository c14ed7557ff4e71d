"""Sign-in by a real directory at a real daemon."""

from collections.abc import Iterator

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.directory.slapd import APP, APP_PASSWORD, BASE, PASSWORD, Slapd

PATH = "/api/v1/auths/ldap"


@pytest.fixture(scope="module")
def daemon(slapd: Slapd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    settings = {
        "ENABLE_LDAP": "true",
        "LDAP_SERVER_LABEL": "Company",
        "LDAP_SERVER_HOST": "127.0.0.1",
        "LDAP_SERVER_PORT": str(slapd.port),
        "LDAP_CA_CERT_FILE": str(slapd.ca_file),
        "LDAP_APP_DN": APP,
        "LDAP_APP_PASSWORD": APP_PASSWORD,
        "LDAP_SEARCH_BASE": BASE,
        "ENABLE_LDAP_GROUP_MANAGEMENT": "true",
        "ENABLE_LDAP_GROUP_CREATION": "true",
        "DEFAULT_USER_ROLE": "user",
        "WEBUI_ADMIN_EMAIL": "root@example.org",
        "WEBUI_ADMIN_PASSWORD": "correct horse battery",
    }
    with running_daemon(tmp_path_factory.mktemp("d"), **settings) as running:
        yield running


def test_a_person_signs_in_and_has_the_groups(daemon: Daemon) -> None:
    assert daemon.call("GET", "/api/config")[1]["ldap"] == {"label": "Company"}
    status, body = daemon.call("POST", PATH, {"user": "ada", "password": PASSWORD})
    assert (status, body["email"], body["name"], body["role"]) == (200, "ada@example.org", "Ada Löve", "user")
    signed = {"Authorization": f"Bearer {body['token']}"}
    groups = daemon.call("GET", "/api/v1/users/groups", None, signed)[1]
    assert {group["name"] for group in groups} == {"research, theory", "staff"}


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ada", "wrong"),
        ("ada", ""),
        ("ada", " "),
        ("ada", "\x00"),
        ("*", PASSWORD),
        ("ada)(uid=*", PASSWORD),
        ("\\61da", PASSWORD),
        ("", PASSWORD),
        ("gateway", APP_PASSWORD),
    ],
)
def test_refusals_have_one_body(daemon: Daemon, user: str, password: str) -> None:
    status, body = daemon.call("POST", PATH, {"user": user, "password": password})
    expected = (400, "invalid_credentials", "cannot sign in: wrong user name or password")
    assert (status, body["error"]["code"], body["error"]["message"]) == expected


def test_no_password_is_logged(daemon: Daemon) -> None:
    log = daemon.wait_for("sign-in refused")
    assert PASSWORD not in log
    assert APP_PASSWORD not in log
