"""A database of a newer version: the doctor of the older one names the command that installs the newer."""

import importlib.metadata
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.storage.migrated import NAME, migrated_copy

ROOT = Path(__file__).parents[2]
HERE, NEWER = "0.1", "99.0"
MIGRATION = "9999_newer"

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


def write_wheel(folder: Path, version: str, *migrations: str) -> None:
    """Write a wheel of this tree, as the given version and with more migrations."""
    about = f"gatewayd-{version}.dist-info"
    needed = importlib.metadata.requires("gatewayd") or []
    lines = [f"Requires-Dist: {each}" for each in needed if "extra ==" not in each]
    with zipfile.ZipFile(folder / f"gatewayd-{version}-py3-none-any.whl", "w") as wheel:
        for package in ("gatewayd", "gatewayctl"):
            for path in (ROOT / package).rglob("*"):
                if path.is_file() and path.suffix != ".pyc":
                    wheel.write(path, path.relative_to(ROOT))
        for name in migrations:
            wheel.writestr(f"gatewayd/storage/migrations/{name}.py", '"""A later migration."""\n')
        head = ["Metadata-Version: 2.1", "Name: gatewayd", f"Version: {version}", *lines]
        wheel.writestr(f"{about}/METADATA", "\n".join(head) + "\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def make_environment(folder: Path) -> Path:
    """Return the interpreter of an environment that sees the libraries of this one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    [packages] = folder.glob("lib/python*/site-packages")
    own = Path(importlib.metadata.distribution("pip").locate_file(""))
    (packages / "libraries.pth").write_text(f"{own}\n")
    return folder / "bin" / "python"


def test_the_newer_version_is_installed_by_the_command_of_the_doctor(tmp_path: Path) -> None:
    wheels, state = tmp_path / "wheels", tmp_path / "state"
    wheels.mkdir()
    state.mkdir(mode=0o700)
    write_wheel(wheels, HERE)
    python = make_environment(tmp_path / "a venv")
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment = {**kept, **pip, "DATA_DIR": str(state), "CONTROL_SOCKET": str(state / "control.sock")}

    def sh(command: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in {0, 1, 2}, done.stderr
        return done.stdout

    def findings() -> dict[str, dict[str, Any]]:
        told = json.loads(sh(f"'{python}' -m gatewayd --doctor"))["findings"]
        return {each["code"]: each for each in told}

    sh(f"'{python}' -m pip install gatewayd=={HERE}")
    migrated_copy(state)
    with closing(sqlite3.connect(state / NAME)) as database, database:
        row = "INSERT INTO tortoise_migrations (app, name, applied_at) VALUES ('gatewayd', ?, 1)"
        database.execute(row, (MIGRATION,))
    (state / NAME).chmod(0o600)
    newer = findings()["schema-newer"]
    assert MIGRATION in newer["sentence"]
    # The newer version is published.
    write_wheel(wheels, NEWER, MIGRATION)
    assert NEWER in sh(newer["command"])
    assert "schema-newer" not in findings()
    shown = sh(f"'{python}' -c 'import gatewayd, importlib.metadata as m; print(m.version(\"gatewayd\"))'")
    assert shown.strip() == NEWER
