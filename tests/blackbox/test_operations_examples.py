"""The commands of gatewayd-operations(7), EXAMPLES, run one after the other against a daemon."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.blackbox.test_reverse_proxies import ask, connected
from tests.fakes.daemons.daemon import Daemon, environment, running_daemon
from tests.fakes.daemons.failing_provider_site import make_key
from tests.fakes.http.public_app import bearer
from tests.fakes.providers.background_upstream import background_upstream
from tests.test_manpages import ROOT, sections

PAGE = ROOT / "man" / "gatewayd-operations.7"
WARNINGS = 1

pytestmark = pytest.mark.process


def commands() -> list[str]:
    """Return the commands of the section as a shell reads them, in order."""
    text = sections(PAGE)["EXAMPLES"].replace(r"\-", "-")
    return re.findall(r"(?m)^(?:\.Dl )?# (.+)$", text)


@dataclass(frozen=True)
class Shell:
    """A shell on the machine of a daemon, in a folder of its own."""

    daemon: Daemon
    folder: Path
    env: dict[str, str]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-o", "pipefail", "-euc", command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A daemon that has answered once, and refused a sign-in."""
    folder, state = tmp_path_factory.mktemp("e"), tmp_path_factory.mktemp("s")
    program = folder / "gatewayctl"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gatewayctl "$@"\n')
    program.chmod(0o755)
    with background_upstream() as provider:
        settings = {"OPENAI_API_BASE_URLS": f"{provider.url}/v1", "OPENAI_API_KEYS": "sk-provider"}
        with running_daemon(state, ENABLE_API_KEYS="true", **settings) as daemon:
            key = make_key(daemon)
            made = daemon.run_ctl("user", "create", "--email", "ada@example.org", "--generate")
            assert made.returncode == 0, made.stderr
            with connected(daemon.base_url) as channel:
                body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
                said = ask(channel, "/api/chat/completions", json.dumps(body).encode(), bearer(key))
                assert said.status == 200, said.read()
                said.read()
                form = {"email": "ada@example.org", "password": "wrong-password"}
                assert ask(channel, "/api/v1/auths/signin", json.dumps(form).encode(), {}).status == 400
            env = environment(state, int(daemon.base_url.rpartition(":")[2]), settings)
            env |= {"PATH": f"{folder}:{os.environ['PATH']}", "GATEWAYCTL_SOCKET": str(daemon.socket)}
            yield Shell(daemon, folder, env)


def test_each_part_of_operations_has_an_example() -> None:
    nouns = {re.match(r"gatewayctl (\S+)", command)[1] for command in commands()}  # type: ignore[index]
    others = {"health", "database", "backup", "doctor", "gc", "metrics"}
    assert nouns == {"audit", "limit", "state", "usage"} | others


@pytest.mark.parametrize("command", commands())
def test_an_example_does_what_it_says(shell: Shell, command: str) -> None:
    """In the order of the page: a backup is verified after it was made."""
    done = shell.run(command)
    # What doctor finds is the machine of the test.
    allowed = {0, WARNINGS} if command == "gatewayctl doctor" else {0}
    assert done.returncode in allowed, (command, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    if ">" in command:
        written = (shell.folder / command.rpartition("> ")[2]).read_text()
        assert tomllib.loads(written) if command.endswith(".toml") else json.loads(written)
    else:
        assert done.stdout.strip(), command
