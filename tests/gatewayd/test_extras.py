"""Which extras are installed, and how an absence is told."""

import sys
import tomllib
from pathlib import Path

import pytest

from gatewayd.errors import Kind
from gatewayd.extras import MODULES, VERSIONS, Extra, find_library, install_hint, is_installed, refusal

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("extra", Extra)
def test_an_extra_that_is_looked_for_can_be_installed(extra: Extra) -> None:
    assert PROJECT["optional-dependencies"][extra]
    assert extra in MODULES


def test_the_tests_bring_every_extra_but_the_inference_library() -> None:
    (own,) = [line for line in PROJECT["optional-dependencies"]["test"] if line.startswith("gatewayd[")]
    assert {str(extra) for extra in Extra} - {Extra.LOCAL} <= set(own[9:-1].split(","))


def test_a_library_is_found_when_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert is_installed(Extra.POSTGRES)
    assert find_library(Extra.POSTGRES) is sys.modules["asyncpg"]
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    assert not is_installed(Extra.POSTGRES)
    assert find_library(Extra.POSTGRES) is None


def test_a_refusal_names_the_extra_and_its_pip_line() -> None:
    assert install_hint(Extra.MCP) == "the extra 'mcp' is not installed, pip install 'gatewayd[mcp]' adds it"
    error = refusal("cannot use tool servers", Extra.MCP, param="servers")
    assert error.message == f"cannot use tool servers: {install_hint(Extra.MCP)}"
    assert (error.kind, error.param) == (Kind.NOT_CONFIGURED, "servers")


def test_a_package_of_another_version_is_not_used_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    package, version = VERSIONS[Extra.GRAPH]
    assert PROJECT["optional-dependencies"][Extra.GRAPH] == [f"{package}=={version}"]
    assert is_installed(Extra.GRAPH)
    monkeypatch.setattr("importlib.metadata.version", lambda name: {package: "0.9.1"}[name])
    assert not is_installed(Extra.GRAPH)
    assert find_library(Extra.GRAPH) is None
    assert install_hint(Extra.GRAPH) == (
        "hnswlib 0.9.1 is not used, pip install 'gatewayd[graph]' puts 0.8.0 in its place"
    )
