"""The commands of gatewayd-cluster(7) are run on real nodes, and its figures are those of the code."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gatewayd.nodes.member import MARGIN, RENEWALS
from gatewayd.settings import Settings
from tests.fakes.daemons.chat_site import House, wait_until
from tests.fakes.daemons.daemon import environment
from tests.fakes.daemons.nodes import SETTINGS, running_nodes
from tests.fakes.storage.postgres import Postgres
from tests.test_manpages import ROOT

PAGE = (ROOT / "man" / "gatewayd-cluster.7").read_text()
SECTIONS = ("PROFILE", "NODES", "FAILURES")


def commands() -> list[list[str]]:
    """Return the commands of gatewayctl in the blocks of the page, in order."""
    lines = PAGE.replace(r"\-", "-").splitlines()
    return [
        shlex.split(line.removeprefix("$ gatewayctl ")) for line in lines if line.startswith("$ gatewayctl ")
    ]


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_has_its_sections(section: str) -> None:
    assert f".Sh {section}\n" in PAGE


def test_the_figures_of_leases() -> None:
    prose = " ".join(PAGE.split())
    assert f"({Settings().node_lease:g} seconds)" in prose
    assert (4, re.findall("four times in", prose)[0]) == (RENEWALS, "four times in")
    assert (0.1, re.findall("a tenth of the lease", prose)[0]) == (MARGIN, "a tenth of the lease")


def test_the_settings_are_those_that_there_are() -> None:
    names = set(re.findall(r"(?m)^\.Va (\w+)", PAGE))
    assert names >= {"node_name", "node_lease"}
    assert names <= set(Settings.model_fields)


def test_the_units_are_those_that_are_installed() -> None:
    for unit in re.findall(r"(?m)^\.Pa (gatewayd\S+\.(?:service|socket))", PAGE):
        assert (ROOT / "systemd" / unit).is_file(), unit


def root_commands() -> list[list[str]]:
    """Return the commands that the page gives to root, in order."""
    return [shlex.split(line) for line in re.findall(r"(?m)^\.Dl # (.+)$", PAGE.replace(r"\-", "-"))]


def test_root_has_two_commands_and_the_units_of_one_are_instances_of_an_installed_one() -> None:
    enable, migrate = root_commands()
    assert enable[:3] == ["systemctl", "enable", "--now"]
    for unit in enable[3:]:
        name, _, instance = unit.partition("@")
        assert instance
        text = (ROOT / "systemd" / f"{name}@.service").read_text()
        # Without this section systemctl refuses to enable a unit.
        assert "[Install]" in text
        assert "%i" in text
    assert migrate == ["gatewayd", "--migrate"]


@pytest.mark.timeout(240)
def test_the_commands_do_what_the_page_says(tmp_path: Path, postgres: Postgres) -> None:
    url = postgres.migrated_database()
    with running_nodes(tmp_path, url) as (first, second):
        [_, [program, *arguments]] = root_commands()
        shared = {"DATABASE_URL": url, "FILE_STORE": str(tmp_path / "files"), "REDIS_URL": "unix:///absent"}
        (tmp_path / "migration").mkdir(mode=0o700)
        migrated = subprocess.run(
            [sys.executable, "-m", program, *arguments],
            env=environment(tmp_path / "migration", 0, {**SETTINGS, **shared}),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert migrated.returncode == 0, migrated.stderr
        ran = []
        for arguments in commands():
            if arguments[:2] == ["node", "remove"]:
                second.daemon.stop(signal.SIGKILL)
                wait_until(lambda: state_of(first, "node-1") == "dead", "the end of the lease", 15)
            done = first.daemon.run_ctl(*arguments)
            assert done.returncode == 0, (arguments, done.stderr)
            ran.append(arguments[1])
            if arguments[1] == "drain":
                wait_ready(second, 200 if "--undo" in arguments else 503)
        assert ran == ["list", "list", "drain", "drain", "remove"]
        assert state_of(first, "node-1") == ""


def wait_ready(house: House, status: int) -> None:
    wait_until(lambda: house.daemon.call("GET", "/readyz")[0] == status, f"readiness {status}", 15)


def state_of(house: House, name: str) -> str:
    """Return the state of a node as gatewayctl shows it, "" for an absent one."""
    lines = house.daemon.run_ctl("node", "list").stdout.splitlines()
    return next((line.split()[1] for line in lines if line.split()[:1] == [name]), "")
