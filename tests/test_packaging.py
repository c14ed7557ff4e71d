"""The recipes of the Debian package and the image agree with the program; tests/faults builds both."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.test_manpages import ROOT

DEBIAN = ROOT / "config" / "debian"
IMAGE = ROOT / "config" / "image" / "Containerfile"
SCRIPTS = ("gatewayd.postinst", "gatewayd.prerm", "gatewayd.postrm", "install-environment")


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the recipe with their arguments, continued lines joined."""
    text = re.sub(r"(?m)^#.*\n", "", IMAGE.read_text()).replace("\\\n", " ")
    return [(name, rest) for name, rest in re.findall(r"(?m)^([A-Z]+) (.+)$", text)]


@pytest.mark.process
def test_the_build_explains_itself_and_refuses_what_it_does_not_know() -> None:
    build = str(DEBIAN / "build")
    done = subprocess.run([build, "--help"], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("usage: config/debian/build")
    wrong = subprocess.run([build, "--nothing"], capture_output=True, text=True, check=False, timeout=60)
    assert wrong.returncode == 2
    bare = subprocess.run([build, "--version"], capture_output=True, text=True, check=False, timeout=60)
    assert (bare.returncode, bare.stderr) == (1, "cannot build the package: --version needs a value\n")


@pytest.mark.process
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_correct_shell(name: str) -> None:
    subprocess.run(["sh", "-n", str(DEBIAN / name)], check=True, timeout=60)


def test_the_package_has_every_unit_and_starts_the_service_with_its_sockets() -> None:
    rules = (DEBIAN / "rules").read_text()
    named = set(re.findall(r"gatewayd[-a-z@]*\.(?:service|socket|timer)", rules))
    units = {path.name for path in (ROOT / "systemd").glob("*.*")}
    assert named == {
        "gatewayd.service",
        "gatewayd.socket",
        "gatewayd-control.socket",
        "gatewayd-backup.timer",
    }
    assert named <= units
    # debhelper would restart the sockets with it, which systemd refuses while the daemon runs.
    assert "--no-start --no-stop-on-upgrade gatewayd.service" in rules
    installed = (DEBIAN / "install-environment").read_text()
    assert "cp systemd/*.service systemd/*.socket systemd/*.timer" in installed
    for unit in (ROOT / "systemd").glob("*.service"):
        for command in re.findall(r"(?m)^ExecStart=(\S+)", unit.read_text()):
            assert Path(command) in {Path("/usr/bin/gatewayd"), Path("/usr/bin/gatewayctl")}


def test_each_override_of_lintian_has_its_reason() -> None:
    lines = (DEBIAN / "gatewayd.lintian-overrides").read_text().splitlines()
    assert lines
    for before, line in zip(["", *lines], lines, strict=False):
        assert line.startswith(("#", "gatewayd: ")), line
        assert not line.startswith("gatewayd: ") or before.startswith(("#", "gatewayd: "))


def test_the_image_is_made_in_two_stages_for_a_user_without_rights() -> None:
    made = instructions()
    bases = [rest for name, rest in made if name == "FROM"]
    assert bases == ["${BASE} AS build", "${BASE}"]
    last = made[len(made) - made[::-1].index(("FROM", "${BASE}")) :]
    arguments = dict(last)
    user, _, group = arguments["USER"].partition(":")
    assert user == group
    assert f"useradd --uid {user} --gid {group}" in arguments["RUN"]
    assert "COPY . " not in IMAGE.read_text().rpartition("FROM ")[2]
    assert arguments["ENTRYPOINT"] == '["gatewayd"]'
    assert 'CMD ["gatewayctl", "health", "-o", "name"]' in arguments["HEALTHCHECK"]
    assert arguments["STOPSIGNAL"] == "SIGTERM"
    assert arguments["VOLUME"] == "/var/lib/gatewayd"
    assert re.search(r"DATA_DIR=/var/lib/gatewayd\b", arguments["ENV"])


def test_the_image_is_made_of_the_source_alone() -> None:
    """What pip needs of this tree is not left out of the context, and nothing else is in it."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert lines[0] == "*"
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert kept == {
        "LICENSE",
        "README.md",
        "config",
        "gatewayctl",
        "gatewayd",
        "man",
        "pyproject.toml",
        "systemd",
    }
