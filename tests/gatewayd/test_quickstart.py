"""Tests for gatewayd.quickstart: what it prints works as it is printed, and what the README has then."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gatewayd.assembly.plugins import plugin_sources
from gatewayd.plugins.directory import read_directory
from gatewayd.quickstart import Quickstart, find_command
from gatewayd.settings import load
from tests.fakes.daemons.daemon import Daemon, free_port, running_daemon

pytestmark = pytest.mark.timeout(400)

README = Path(__file__).parents[2] / "README.md"


@dataclass
class Quick:
    """A quick start and what it printed."""

    daemon: Daemon
    text: str

    def find(self, pattern: str) -> str:
        found = re.search(pattern, self.text)
        assert found is not None, self.text
        return found[1]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[Quick]:
    state = tmp_path_factory.mktemp("q")
    settings = {"ENABLE_BUILTIN_MODEL": "true", "BUILTIN_MODEL_PATH": str(weights)}
    arguments = ("--quickstart", "--state", str(state))
    with running_daemon(state, *arguments, PORT=str(free_port()), **settings) as daemon:
        # All manual pages are embedded first.
        yield Quick(daemon, daemon.wait_for("ingest DIRECTORY", 300))


def run(command: list[str], script: str | None = None) -> subprocess.CompletedProcess[str]:
    # The commands as printed are found where this interpreter's scripts are.
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        command,
        input=script,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


@pytest.mark.real("builtin model")
def test_openai_snippet_answers_whole_and_streamed(quick: Quick) -> None:
    script = quick.find(r"(?s)python3 - <<'PY'\n(.*?)\n  PY")
    script = "\n".join(line.removeprefix("  ") for line in script.splitlines())
    done = run([sys.executable, "-W", "error::DeprecationWarning", "-"], script)
    assert done.returncode == 0, done.stderr
    whole, _, streamed = done.stdout.partition("\n")
    assert whole.strip()
    assert streamed.strip()


@pytest.mark.real("builtin model")
def test_curl_snippet_answers(quick: Quick) -> None:
    command = quick.find(r"(?s)(curl .*?\}'\n)").replace("\\\n", " ")
    body = re.search(r"-d '(.*)'", command)
    key = re.search(r"Bearer (sk-\w+)", command)
    url = re.search(r"curl http://[^/]+(\S+)", command)
    assert body
    assert key
    assert url
    status, answer = quick.daemon.call(
        "POST", url[1], json.loads(body[1]), {"Authorization": f"Bearer {key[1]}"}
    )
    assert status == 200
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] > 0


@pytest.mark.real("builtin model")
def test_gatewayctl_snippet_answers(quick: Quick) -> None:
    line = quick.find(r'gatewayctl (--socket .* chat .* "Say hello.")')
    _, socket, rest = line.split(" ", 2)
    done = run([sys.executable, "-m", "gatewayctl", "--socket", socket, *shlex.split(rest)])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.real("builtin model")
def test_the_manual_is_asked_as_it_is_printed(quick: Quick, tmp_path: Path) -> None:
    (tmp_path / "pump.md").write_text("The pump is switched off with the green lever.")
    chat, query, ingest = (
        quick.find(rf"gatewayctl (--socket \S+ {verb}.*)")
        for verb in (r"chat .* --coll", "collection", "ingest")
    )
    answered = run([sys.executable, "-m", "gatewayctl", *shlex.split(chat), "--max-tokens", "30"])
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.strip()
    assert re.search(r"\[1\] gateway", answered.stderr)
    found = run([sys.executable, "-m", "gatewayctl", *shlex.split(query), "-o", "json"])
    assert "--expires-in" in found.stdout, found.stderr
    command = shlex.split(ingest.replace("DIRECTORY", str(tmp_path)))
    done = run([sys.executable, "-m", "gatewayctl", *command])
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 added")


@pytest.mark.real("builtin model")
@pytest.mark.parametrize("library", ["openai", "anthropic", "ollama"])
def test_readme_snippet_answers(quick: Quick, library: str) -> None:
    text = README.read_text()
    found = re.search(rf"(?ms)^[^\n]*`pip install {library}`[^\n]*\n\n~~~sh\n(.*?)^~~~$", text)
    assert found, f"the README has no lines for {library}"
    script = found[1]
    assert "http://127.0.0.1:8080/" in script
    script = script.replace("http://127.0.0.1:8080", quick.daemon.base_url)
    key = quick.find(r"API key +(sk-\w+)")
    done = run(["bash", "-eu"], f"KEY={key}\n{script}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.real("builtin model")
def test_secrets_are_printed_once(quick: Quick) -> None:
    key = quick.find(r"API key +(sk-\w+)")
    state = quick.daemon.state
    quick.daemon.stop()
    settings = {"ENABLE_BUILTIN_MODEL": "false", "PORT": str(free_port())}
    with running_daemon(state, "--quickstart", "--state", str(state), **settings) as again:
        text = again.wait_for("Stop it with Control-C")
        assert key not in text
        command = re.search(r"(gatewayctl --socket .* key create .*)", text)
        assert command is not None
        made = run([sys.executable, "-m", *shlex.split(command[1]), "-o", "name"])
        assert made.stdout.startswith("sk-"), made.stderr
        assert again.call("GET", "/api/models", headers={"Authorization": f"Bearer {key}"})[0] == 200


def test_it_stays_local_whatever_is_configured(tmp_path: Path) -> None:
    other, state, port = tmp_path / "other.db", tmp_path / "q", free_port()
    file = tmp_path / "gatewayd.toml"
    elsewhere = f'host = "0.0.0.0"\ndatabase_url = "sqlite:///{other}"\ncontrol_group = "no-such-group"\n'
    file.write_text(f'{elsewhere}data_dir = "{tmp_path / "data"}"\nwebui_secret_key = "{"s" * 32}"\n')
    arguments = ("-f", str(file), "--quickstart", "--state", str(state))
    environ = {"HOST": "0.0.0.0", "DATABASE_URL": f"sqlite:///{other}", "PORT": str(port)}
    with running_daemon(state, *arguments, **environ) as daemon:
        log = daemon.wait_for("No model is ready")
        link = re.search(rf"http://127.0.0.1:{port}/auth#link=([0-9a-f]{{64}})\n", log)
        assert link is not None
        sent = {"token": link[1]}
        assert daemon.call("POST", "/api/v1/auths/link", sent)[1]["email"] == "admin@localhost"
        assert daemon.call("POST", "/api/v1/auths/link", sent)[0] == 400
    assert f"listening address=127.0.0.1:{port}" in log
    assert "0.0.0.0:" not in log
    assert "host of environment HOST is not used" in log
    assert f"data_dir of file {file} line 4 is not used" in log
    assert "secret_key of file" in log
    assert "s" * 32 not in log
    assert (state / "gatewayd.db").exists()
    assert not other.exists()
    assert not (tmp_path / "data").exists()


def test_plugins_of_the_service_are_not_loaded(tmp_path: Path) -> None:
    folder, state = tmp_path / "service", tmp_path / "q"
    for one, name in ((folder, "theirs"), (state / "plugins.d", "own")):
        one.mkdir(parents=True)
        (one / f"{name}.py").write_text("class Pipe:\n    def pipe(self, body): ...\n")

    def found(overrides: Mapping[str, Any]) -> list[str]:
        directory = plugin_sources(
            load(None, {"PLUGINS_DIR": str(folder)}, overrides, default_file=None)
        ).directory
        assert directory is not None
        return [plugin.id for plugin in read_directory(directory).plugins]

    assert found({}) == ["theirs"]
    assert found(Quickstart(state).overrides()) == ["own"]


def test_sockets_of_a_service_manager_are_left_alone(tmp_path: Path) -> None:
    given = {"LISTEN_PID": "7", "LISTEN_FDS": "1", "LISTEN_FDNAMES": "http", "OPENAI_API_KEY": "x"}
    assert Quickstart(tmp_path).environment(given) == {"OPENAI_API_KEY": "x"}


def test_a_shell_finds_gatewayctl_as_it_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert find_command() == "gatewayctl"
    command = tmp_path / "gatewayctl"
    command.touch(mode=0o755)
    assert find_command() == str(command)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_command() == "gatewayctl"
