"""Which extras are installed, and how an absence is told."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gatewayd.errors import ErrorKind
from gatewayd.extras import (
    MODULES,
    VERSIONS,
    PackageExtra,
    find_library,
    install_hint,
    is_installed,
    missing_extra_error,
)

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("extra", PackageExtra)
def test_an_extra_that_is_looked_for_can_be_installed(extra: PackageExtra) -> None:
    assert PROJECT["optional-dependencies"][extra]
    assert extra in MODULES


def test_the_tests_bring_every_extra_but_the_inference_library() -> None:
    (own,) = [line for line in PROJECT["optional-dependencies"]["test"] if line.startswith("gatewayd[")]
    assert {str(extra) for extra in PackageExtra} - {PackageExtra.LOCAL} <= set(own[9:-1].split(","))


def test_a_library_is_found_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_installed(PackageExtra.POSTGRES)
    assert find_library(PackageExtra.POSTGRES) is sys.modules["asyncpg"]
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    assert not is_installed(PackageExtra.POSTGRES)
    assert find_library(PackageExtra.POSTGRES) is None


def test_a_refusal_names_the_extra_and_its_pip_line() -> None:
    assert (
        install_hint(PackageExtra.MCP)
        == "the extra 'mcp' is not installed, pip install 'gatewayd[mcp]' installs it"
    )
    error = missing_extra_error("cannot use tool servers", PackageExtra.MCP, param="servers")
    assert error.message == f"cannot use tool servers: {install_hint(PackageExtra.MCP)}"
    assert (error.kind, error.param) == (ErrorKind.NOT_CONFIGURED, "servers")


def test_a_package_of_another_version_is_not_used_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    package, version = VERSIONS[PackageExtra.GRAPH]
    assert PROJECT["optional-dependencies"][PackageExtra.GRAPH] == [f"{package}=={version}"]
    assert is_installed(PackageExtra.GRAPH)
    monkeypatch.setattr("importlib.metadata.version", lambda name: {package: "0.9.1"}[name])
    assert not is_installed(PackageExtra.GRAPH)
    assert find_library(PackageExtra.GRAPH) is None
    assert install_hint(PackageExtra.GRAPH) == (
        "hnswlib 0.9.1 is not supported, pip install 'gatewayd[graph]' installs 0.8.0"
    )


@pytest.mark.process
def test_the_daemon_is_imported_without_any_extra() -> None:
    modules = [module for names in MODULES.values() for module in names]
    code = "import sys; sys.modules.update(dict.fromkeys(sys.argv[1:])); import gatewayd.command"
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
