"""How the first account is made, and what a stranger gets who comes before it; the limits of the door."""

import json
from collections.abc import Iterator

import pytest

from tests.fakes.daemons.daemon import Daemon, running_daemon
from tests.fakes.http.raw_http import send

AUTHS = "/api/v1/auths"
EMAIL = "root@example.org"
PASSWORD = "correct horse"
FORM = {"name": "Eve", "email": "eve@example.org", "password": PASSWORD}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    strict = {"ENABLE_INITIAL_ADMIN_SIGNUP": "false", "SIGNUP_ADDRESS_LIMIT": "2"}
    with running_daemon(tmp_path_factory.mktemp("d") / "state", **strict) as running:
        yield running


def sign_in(daemon: Daemon, email: str, password: str) -> int:
    return daemon.call("POST", f"{AUTHS}/signin", {"email": email, "password": password})[0]


class TestOneAfterTheOther:
    """The life of a gateway, in order."""

    def test_no_page_makes_an_account(self, daemon: Daemon) -> None:
        body = json.dumps(FORM).encode()
        page = {"Origin": "https://evil.example", "Content-Type": "text/plain"}
        own = {"Origin": daemon.base_url, "Content-Type": "text/plain"}
        rebound = {"Origin": "http://evil.example", "Host": "evil.example"}
        for headers, status, code in (
            (page, 403, b"foreign_origin"),
            (own, 415, b"unsupported_media_type"),
            # A page whose host name leads to this machine is of the own origin.
            (rebound, 403, b"not_set_up"),
        ):
            reply = send(daemon.base_url, "POST", f"{AUTHS}/signup", body, headers)
            assert (reply.status, code in reply.body) == (status, True), headers

    def test_no_program_makes_the_first_account_either(self, daemon: Daemon) -> None:
        status, refusal = daemon.call("POST", f"{AUTHS}/signup", FORM)
        assert (status, refusal["error"]["code"]) == (403, "not_set_up")
        assert daemon.call("GET", "/api/config")[1]["onboarding"] is True

    def test_setup_makes_it_with_a_password_that_is_hard_to_guess(self, daemon: Daemon) -> None:
        setup = ("setup", "--email", EMAIL, "--name", "Root", "--password-file", "-")
        for weak in ("short", "password1", "root@example.org"):
            refused = daemon.run_ctl(*setup, input=weak)
            assert (refused.returncode, "cannot accept password" in refused.stderr) == (1, True), weak
        assert daemon.run_ctl(*setup, input=PASSWORD).returncode == 0
        assert sign_in(daemon, EMAIL, PASSWORD) == 200
        assert daemon.call("POST", f"{AUTHS}/signup", FORM)[1]["error"]["code"] == "signup_off"

    def test_an_account_gets_no_weak_password_from_anybody(self, daemon: Daemon) -> None:
        assert daemon.run_ctl("user", "create", "--email", "ann@example.org").returncode == 0
        refused = daemon.run_ctl("user", "password", "ann@example.org", "--password-file", "-", input="x")
        assert (refused.returncode, "at least 8" in refused.stderr) == (1, True)
        token = daemon.call("POST", f"{AUTHS}/signin", {"email": EMAIL, "password": PASSWORD})[1]["token"]
        signed = {"Authorization": f"Bearer {token}"}
        for path, form in (
            (f"{AUTHS}/add", {**FORM, "password": "eve"}),
            (f"{AUTHS}/update/password", {"password": PASSWORD, "new_password": "x"}),
        ):
            status, answer = daemon.call("POST", path, form, signed)
            assert (status, answer["error"]["code"]) == (400, "weak_password"), path

    def test_sign_ups_are_counted(self, daemon: Daemon) -> None:
        token = daemon.call("POST", f"{AUTHS}/signin", {"email": EMAIL, "password": PASSWORD})[1]["token"]
        signed = {"Authorization": f"Bearer {token}"}
        assert daemon.call("POST", f"{AUTHS}/admin/config", {"ENABLE_SIGNUP": True}, signed)[0] == 200
        assert daemon.call("POST", f"{AUTHS}/signup", FORM)[0] == 200
        assert daemon.call("POST", f"{AUTHS}/signup", FORM)[0] == 409
        assert daemon.call("POST", f"{AUTHS}/signup", {**FORM, "email": "new@example.org"})[0] == 429

    def test_strangers_lock_out_themselves(self, daemon: Daemon) -> None:
        pair = {"email": EMAIL, "password": PASSWORD}
        first = send(daemon.base_url, "POST", f"{AUTHS}/signin", json.dumps(pair).encode())
        mark = first.headers["set-cookie"].partition(";")[0]
        assert mark.startswith("gatewayd_device=")
        statuses = [sign_in(daemon, EMAIL, "wrong") for _ in range(12)]
        assert statuses == [400] * 10 + [429] * 2
        known = send(daemon.base_url, "POST", f"{AUTHS}/signin", json.dumps(pair).encode(), {"Cookie": mark})
        assert known.status == 200
        assert sign_in(daemon, EMAIL, PASSWORD) == 429
