"""Tests for gatewayd.daemon: what a service manager sees: readiness, activation, reload, watchdog, drain."""

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gatewayctl.client import ControlClient
from gatewayctl.transport import Transport
from gatewayctl.wire import routes
from gatewayctl.wire.health import LevelChange
from gatewayd import daemon as composition
from gatewayd.daemon import _every
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings import load
from tests.conftest import missing
from tests.fakes.daemons.daemon import Daemon, environment, free_port, run_daemon, running_daemon, wait_ready
from tests.fakes.daemons.plugin_site import wait_until
from tests.fakes.http.multipart_forms import FORM, file_part, form
from tests.fakes.providers.slow_provider import slow_provider

CHAT = {"model": "slow", "messages": [{"role": "user", "content": "hi"}], "stream": True}


class NotifySocket:
    """A real notify socket, read message by message."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.channel.bind(str(path))
        self.channel.settimeout(20)

    def next(self) -> dict[str, str]:
        lines = self.channel.recv(65536).decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def until(self, name: str) -> dict[str, str]:
        while True:
            fields = self.next()
            if name in fields:
                return fields


@pytest.fixture
def notify(tmp_path: Path) -> Iterator[NotifySocket]:
    listener = NotifySocket(tmp_path / "n")
    yield listener
    listener.channel.close()


def first_key(daemon: Daemon) -> str:
    made = daemon.run_ctl("setup", "--email", "root@example.org", "--name", "Root", "-o", "name")
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


async def test_a_chore_that_goes_on_failing_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    ended, outcomes = asyncio.Event(), iter([True, True, False, True, True])

    async def work() -> None:
        is_failing = next(outcomes, None)
        if is_failing is None:
            ended.set()
        if is_failing:
            raise GatewayError(ErrorKind.UNAVAILABLE, "cannot write")

    chore = asyncio.ensure_future(_every(0, work))
    await ended.wait()
    chore.cancel()
    assert [record.getMessage() for record in caplog.records] == [
        "chore failed, it is repeated: cannot write"
    ] * 2


def test_readiness_comes_only_when_it_serves(state: Path, notify: NotifySocket) -> None:
    with running_daemon(state, ready=False, NOTIFY_SOCKET=str(notify.path)) as daemon:
        notify.until("READY")
        assert daemon.call("GET", "/readyz")[0] == 200
        daemon.process.send_signal(signal.SIGTERM)
        assert notify.until("STOPPING")["STOPPING"] == "1"
        assert daemon.process.wait(20) == 0


def test_watchdog_is_fed_while_the_database_answers(state: Path, notify: NotifySocket) -> None:
    with running_daemon(state, ready=False, NOTIFY_SOCKET=str(notify.path), WATCHDOG_USEC="400000"):
        notify.until("READY")
        for _ in range(3):
            assert notify.until("WATCHDOG")["WATCHDOG"] == "1"


def test_reload_takes_a_good_configuration_and_keeps_the_old_for_a_bad(
    state: Path, notify: NotifySocket
) -> None:
    file = state / "gatewayd.toml"
    file.write_text('webui_name = "before"\nenable_signup = true\n')
    with running_daemon(state, "-f", str(file), ready=False, NOTIFY_SOCKET=str(notify.path)) as daemon:
        notify.until("READY")
        file.write_text("webui_name = 5\nenabel_signup = false\n")
        daemon.process.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC" in notify.until("RELOADING")
        assert "refused" in notify.until("READY")["STATUS"]
        assert daemon.call("GET", "/api/config")[1]["features"]["enable_signup"] is True
        file.write_text("enable_signup = false\n")
        daemon.process.send_signal(signal.SIGHUP)
        notify.until("RELOADING")
        assert notify.until("READY")["STATUS"] == "serving"
        assert daemon.call("GET", "/api/config")[1]["features"]["enable_signup"] is False


def test_a_reload_opens_the_access_log_anew_and_keeps_levels(state: Path, notify: NotifySocket) -> None:
    file, lines, old = state / "gatewayd.toml", state / "access.log", state / "access.log.1"
    file.write_text(f'access_log = "json"\naccess_log_path = "{lines}"\n')
    with running_daemon(state, "-f", str(file), ready=False, NOTIFY_SOCKET=str(notify.path)) as daemon:
        notify.until("READY")
        client = ControlClient(Transport(daemon.socket))
        client.call(routes.SET_LOG_LEVEL, body=LevelChange(logger="gatewayd.http", level="error"))
        for text, status in (("webui_name = 5\n", "refused"), (file.read_text(), "serving")):
            lines.rename(old)
            file.write_text(text)
            daemon.process.send_signal(signal.SIGHUP)
            notify.until("RELOADING")
            assert status in notify.until("READY")["STATUS"]
            assert daemon.call("GET", "/livez")[0] == 200
            wait_until(lambda: lines.exists() and '"route":"/livez"' in lines.read_text())
        levels = client.call(routes.LIST_LOG_LEVELS).levels
        assert [(row.logger, row.level) for row in levels] == [
            ("gatewayd", "info"),
            ("gatewayd.http", "error"),
        ]


def test_reload_says_what_the_new_configuration_makes_worth_a_look(state: Path, notify: NotifySocket) -> None:
    file = state / "gatewayd.toml"
    file.write_text("")
    with running_daemon(state, "-f", str(file), ready=False, NOTIFY_SOCKET=str(notify.path)) as daemon:
        notify.until("READY")
        assert "there is no SCIM token yet" not in "".join(daemon.log)
        file.write_text("scim_enabled = true\n")
        daemon.process.send_signal(signal.SIGHUP)
        notify.until("RELOADING")
        notify.until("READY")
        daemon.wait_for("SCIM clients are refused: there is no SCIM token yet")


def test_reload_opens_and_closes_providers(state: Path, notify: NotifySocket) -> None:
    file = state / "gatewayd.toml"
    file.write_text("")
    with (
        slow_provider() as provider,
        running_daemon(state, "-f", str(file), ready=False, NOTIFY_SOCKET=str(notify.path)) as daemon,
    ):
        notify.until("READY")
        headers = {"Authorization": f"Bearer {first_key(daemon)}"}
        assert daemon.call("GET", "/api/models", headers=headers)[1]["data"] == []
        file.write_text(f'[[providers]]\nname = "slow"\nbase_url = "{provider.url}/v1"\n')
        daemon.process.send_signal(signal.SIGHUP)
        notify.until("RELOADING")
        notify.until("READY")
        listed = daemon.call("GET", "/api/models", headers=headers)[1]["data"]
        assert [model["id"] for model in listed] == ["slow"]


def open_stream(daemon: Daemon, key: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    host, port = daemon.base_url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    connection.request(
        "POST",
        "/api/chat/completions",
        json.dumps(CHAT),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    return connection, connection.getresponse()


def test_stop_lets_a_stream_finish_and_refuses_new_work(state: Path) -> None:
    with (
        slow_provider() as provider,
        running_daemon(state, OPENAI_API_BASE_URLS=f"{provider.url}/v1", OPENAI_API_KEYS="k") as daemon,
    ):
        connection, reply = open_stream(daemon, first_key(daemon))
        assert b"data:" in reply.readline()
        daemon.process.send_signal(signal.SIGTERM)
        with pytest.raises(OSError):
            while True:
                with socket.create_connection(("127.0.0.1", connection.port), timeout=5):
                    time.sleep(0.05)
        provider.release.set()
        rest = reply.read()
        assert rest.rstrip().endswith(b"data: [DONE]")
        connection.close()
        assert daemon.process.wait(20) == 0


def test_stop_does_not_wait_longer_than_the_drain_timeout(state: Path) -> None:
    with (
        slow_provider() as provider,
        running_daemon(
            state, OPENAI_API_BASE_URLS=f"{provider.url}/v1", OPENAI_API_KEYS="k", DRAIN_TIMEOUT="0.2"
        ) as daemon,
    ):
        connection, reply = open_stream(daemon, first_key(daemon))
        assert b"data:" in reply.readline()
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(20) == 0
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            assert b"[DONE]" not in reply.read()
        connection.close()
        assert provider.closed.wait(5)


def test_stop_does_not_wait_for_who_waits_for_a_file(state: Path) -> None:
    with running_daemon(state, DRAIN_TIMEOUT="120") as daemon:
        key = first_key(daemon)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": FORM}
        host, port = daemon.base_url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=30)
        # Only stored, it is never finished.
        connection.request("POST", "/api/v1/files/?process=false", form(file_part(b"x")), headers)
        file_id = json.loads(connection.getresponse().read())["id"]
        connection.request("GET", f"/api/v1/files/{file_id}/process/status?stream=true", headers=headers)
        reply = connection.getresponse()
        assert reply.readline() == b'data: {"status":"pending"}\n'
        daemon.process.send_signal(signal.SIGTERM)
        assert reply.read() == b"\n"
        connection.close()
        assert daemon.process.wait(20) == 0


def test_client_that_leaves_a_silent_stream_closes_the_provider_within_a_second(state: Path) -> None:
    with (
        slow_provider() as provider,
        running_daemon(state, OPENAI_API_BASE_URLS=f"{provider.url}/v1", OPENAI_API_KEYS="k") as daemon,
    ):
        connection, reply = open_stream(daemon, first_key(daemon))
        assert b"data:" in reply.readline()
        reply.close()
        connection.close()
        assert provider.closed.wait(1)


def test_socket_activation(state: Path) -> None:
    tool = shutil.which("systemd-socket-activate")
    if tool is None:
        missing("systemd-socket-activate", "not installed")
    port = free_port()
    control = state / "control.sock"
    # One name for each socket, in the order of the sockets.
    process = subprocess.Popen(
        [
            str(tool),
            "-l",
            f"127.0.0.1:{port}",
            "-l",
            str(control),
            "--fdname=http:control",
            *[f"-E{name}={value}" for name, value in environment(state, 1, {}).items()],
            sys.executable,
            "-m",
            "gatewayd",
        ],
        env=environment(state, 1, {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    daemon = Daemon(process, f"http://127.0.0.1:{port}", control, state)
    try:
        # The first connection starts the daemon; port 1 of the settings is not used.
        wait_ready(daemon)
        assert daemon.run_ctl("health").returncode == 0
    finally:
        process.terminate()
        assert process.wait(30) == 0
        assert process.stdout is not None
        process.stdout.close()


def test_second_daemon_on_the_same_state_is_refused(state: Path) -> None:
    with running_daemon(state) as daemon:
        second = run_daemon(state)
        assert second.returncode != 0
        assert str(daemon.process.pid) in second.stderr


def test_documentation_is_served_in_development_only(state: Path) -> None:
    with running_daemon(state, ENV="prod") as daemon:
        assert daemon.call("GET", "/docs")[0] == 404
        assert daemon.call("GET", "/openapi.json")[0] == 404
    with running_daemon(state, ENV="dev") as daemon:
        assert daemon.call("GET", "/docs")[0] == 200
        assert daemon.call("GET", "/openapi.json")[1]["openapi"].startswith("3.1")


def test_state_is_private(state: Path) -> None:
    with running_daemon(state, fresh=True) as daemon:
        first_key(daemon)
        for path in state.iterdir():
            assert path.stat().st_mode & 0o077 == 0, path
        assert (state / "gatewayd.db").stat().st_mode & 0o777 == 0o600


def test_a_stop_during_the_start_gives_it_up(state: Path) -> None:
    # The greeting waits for a model that never comes.
    settings = {"OPENAI_API_BASE_URLS": "http://127.0.0.1:1/v1"}
    with running_daemon(state, "--quickstart", "--state", str(state), **settings) as daemon:
        assert daemon.stop(signal.SIGINT) == 0
        daemon.wait_for("stopped before the start was complete")


def test_a_stop_does_not_wait_for_plugins_that_a_reload_loads(state: Path, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    with running_daemon(state, PLUGINS_DIR=str(plugins)) as daemon:
        source = "import time\nprint('loading')\ntime.sleep(3600)\nclass Pipe: pass\n"
        (plugins / "slow.py").write_text(source)
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("text=loading")
        assert daemon.stop() == 0
        daemon.wait_for("stopped before the reload was complete")


def test_a_database_server_that_is_down_is_tried_again_later(state: Path) -> None:
    refused = run_daemon(state, DATABASE_URL=f"postgresql://u@/gatewayd?host={state}")
    assert refused.returncode == 75
    assert "cannot be reached" in refused.stderr


def upgrade(daemon: Daemon) -> int:
    """Ask for the websocket of Socket.IO and return the status."""
    host = daemon.base_url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=20)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    with contextlib.closing(connection):
        connection.request("GET", "/ws/socket.io/?EIO=4&transport=websocket", headers=headers)
        return connection.getresponse().status


@pytest.mark.parametrize("passwords", ["true", "false"])
def test_clients_are_told_what_they_may_do(state: Path, passwords: str) -> None:
    with running_daemon(state, ENABLE_PASSWORD_AUTH=passwords) as daemon:
        made = daemon.run_ctl("setup", "--email", "ada@example.org", "--name", "Ada", "-o", "json")
        person = {"email": "ada@example.org", "password": json.loads(made.stdout)["password"]}
        for is_open in (False, True):
            assert daemon.run_ctl("setting", "set", f"ENABLE_SIGNUP={str(is_open).lower()}").returncode == 0
            told = daemon.call("GET", "/api/config")[1]
            features = told["features"]
            signed_in, _ = daemon.call("POST", "/api/v1/auths/signin", person)
            assert features["enable_login_form"] is (signed_in == 200) is (passwords == "true")
            new = {"email": "bob@example.org", "name": "Bob", "password": "a long pass phrase"}
            signed_up, _ = daemon.call("POST", "/api/v1/auths/signup", new)
            assert features["enable_signup"] is (signed_up == 200) is is_open
            assert features["enable_websocket"] is (upgrade(daemon) == 101)
            assert daemon.call("GET", "/api/v1/auths/")[0] == 401
            assert (features["auth"], features["enable_ldap"], features["auth_trusted_header"]) == (
                True,
                daemon.call("POST", "/api/v1/auths/ldap", {"user": "u", "password": "p"})[0] != 403,
                False,
            )
            assert told["oauth"]["providers"] == {}
            assert daemon.call("GET", "/oauth/google/login")[0] == 404


async def test_the_model_that_is_there_is_ready(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tmp_path / "own.gguf"
    weights.touch()
    settings = load(None, {}, {"data_dir": state, "builtin_model_path": weights}, default_file=None)
    told: list[str] = []
    monkeypatch.setattr(composition, "is_installed", lambda _: True)
    await composition.fetch_model(settings, told.append)
    assert told == [
        f"the built-in model is in {weights}; a running daemon loads it at its next start",
    ]


async def test_the_engine_of_the_model_must_be_installed(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composition, "is_installed", lambda _: False)
    with pytest.raises(GatewayError, match="the extra 'local' is not installed"):
        await composition.fetch_model(load(None, {}, {"data_dir": state}, default_file=None), print)


async def test_root_fetches_the_model_as_the_owner_of_the_state(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir(exist_ok=True)
    became: list[object] = []

    async def fetch(data_dir: Path, _: object) -> Path:
        return data_dir / "models" / f"fetched by {became}"

    monkeypatch.setattr(composition, "is_installed", lambda _: True)
    monkeypatch.setattr(composition, "find_weights", lambda *_: None)
    monkeypatch.setattr(composition, "fetch_weights", fetch)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("setgroups", "setgid", "setuid"):
        monkeypatch.setattr(os, name, became.append)
    told: list[str] = []
    await composition.fetch_model(load(None, {}, {"data_dir": state}, default_file=None), told.append)
    owner = state.stat()
    assert f"fetched by {[[], owner.st_gid, owner.st_uid]}" in told[0]
