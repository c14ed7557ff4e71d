"""Tests for gatewayd.command: arguments, the configuration check, exit statuses."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.daemons.daemon import environment, free_port, run_daemon, running_daemon


def test_configuration_check(state: Path) -> None:
    good = state / "good.toml"
    good.write_text("port = 8080\n")
    assert run_daemon(state, "-n", "-f", str(good)).returncode == 0
    good.write_text(
        'port = 8080\n[[providers]]\nname = "acme"\nbase_url = "https://api.groq.com/openai/v1"\nkey = "k"\n'
        '[providers.families]\nfast = "llama-3.3-70b"\n[[provider_rules]]\nmodel = "odd*"\ndrop = ["seed"]\n'
    )
    told = run_daemon(state, "-n", "-f", str(good))
    assert told.returncode == 0, told.stderr
    first, fast, odd, others = told.stdout.splitlines()
    assert first == "provider acme: kind openai, maker groq"
    assert fast.startswith("  fast: family llama-3.3-70b, ")
    assert odd.endswith(" rules, 1 of the settings: drop")
    assert others.startswith("  *: ")
    bad = state / "bad.toml"
    bad.write_text('# a comment\nenable_api_keys = "maybe"\nprot = 1\n')
    refused = run_daemon(state, "-n", "-f", str(bad))
    assert refused.returncode == 78
    assert "bad.toml" in refused.stderr
    assert "line 2" in refused.stderr or ":2" in refused.stderr
    assert "enable_api_keys" in refused.stderr
    assert "port" in refused.stderr
    assert not (state / "gatewayd.db").exists()
    for address in ("postgresql://h/x?colour=red", "postgresql://h:99999/x"):
        refused = run_daemon(state, "-n", DATABASE_URL=address)
        assert refused.returncode == 78
        assert "database" in refused.stderr


@pytest.mark.parametrize(
    ("args", "settings", "status", "words"),
    [
        (["--nonsense"], {}, 64, "--nonsense"),
        (["--state", "x"], {}, 64, "--quickstart"),
        ([], {"GATEWAYD_PRT": "1"}, 78, "GATEWAYD_PORT"),
        ([], {"DATABASE_URL": "mysql://x"}, 78, "DATABASE_URL"),
        ([], {"HOST": "192.0.2.1"}, 78, "192.0.2.1"),
        ([], {"CONTROL_GROUP": "no-such-group"}, 78, "no-such-group"),
        ([], {"OPENAI_API_BASE_URLS": "ftp://x"}, 78, "openai_api_base_urls"),
    ],
)
def test_a_start_that_cannot_be_says_why(
    state: Path, args: list[str], settings: dict[str, str], status: int, words: str
) -> None:
    ended = run_daemon(state, *args, **settings)
    assert ended.returncode == status, ended.stderr
    assert words.lower() in ended.stderr.lower()
    assert "Traceback" not in ended.stderr


def test_a_start_with_closed_output_has_its_status(state: Path) -> None:
    command = [sys.executable, "-m", "gatewayd", "-n"]
    for settings, status in (({}, 0), ({"PORT": "none"}, 78)):
        ended = subprocess.run(
            ["/bin/sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command],
            env=environment(state, free_port(), {}) | settings,
            timeout=60,
            check=False,
        )
        assert ended.returncode == status


def test_migrate_brings_the_schema_up_to_date(state: Path) -> None:
    done = run_daemon(state, "--migrate")
    assert done.returncode == 0, done.stderr
    assert (state / "gatewayd.db").exists()
    assert run_daemon(state, "--migrate").returncode == 0
    with running_daemon(state) as daemon:
        assert daemon.call("GET", "/health")[0] == 200


def test_a_model_that_cannot_be_fetched_says_why(state: Path) -> None:
    refused = run_daemon(state, "--fetch-model", ENABLE_BUILTIN_MODEL="false")
    assert refused.returncode == 78
    assert "the setting enable_builtin_model is false" in refused.stderr


def test_a_daemon_without_a_model_says_so(state: Path) -> None:
    with running_daemon(state) as running:
        assert "warning gatewayd.daemon" in running.wait_for("there is no model: name a provider")
    with running_daemon(state, OPENAI_API_BASE_URLS="http://127.0.0.1:1/v1") as running:
        assert "there is no model" not in running.wait_for("gatewayd.daemon: ready")


CLINGING = """
import asyncio
import threading
import time


class Pipe:
    async def pipe(self, body):
        threading.Thread(target=time.sleep, args=(3600,)).start()
        print("it clings")
        while True:
            try:
                await asyncio.sleep(3600)
            except BaseException:
                pass
"""


def test_a_plugin_that_never_ends_does_not_keep_the_process(state: Path) -> None:
    plugins = state / "plugins.d"
    plugins.mkdir(parents=True)
    (plugins / "clinging.py").write_text(CLINGING)
    with running_daemon(state, PLUGINS_DIR=str(plugins), DRAIN_TIMEOUT="0") as daemon:
        person = {"name": "Ann", "email": "ann@example.org", "password": "correct horse"}
        status, account = daemon.call("POST", "/api/v1/auths/signup", person)
        assert status == 200, account
        bearer = {"Authorization": f"Bearer {account['token']}"}
        request = {
            "model": "clinging",
            "messages": [{"role": "user", "content": "hi"}],
            "chat_id": "local:x",
            "session_id": "s",
        }
        status, started = daemon.call("POST", "/api/chat/completions", request, bearer)
        assert status == 200, started
        daemon.wait_for("it clings")
        assert daemon.stop() == 0
        assert "stopped" in "".join(daemon.log)
