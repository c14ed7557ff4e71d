"""What contributors are told: CONTRIBUTING names what exists, and each place runs the same checks."""

import ast
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from gatewayd import __released__, __version__

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
GUIDE = (GITHUB / "CONTRIBUTING.md").read_text()
DOCUMENTS = sorted(path for path in GITHUB.rglob("*") if path.is_file() and path.suffix != ".png")

# The tools of .ci/run lint, as a shell or pre-commit starts them.
CHECK = re.compile(r"(ruff (?:check|format)|mypy|lint-imports|mandoc -Tlint -Wwarning)\b")


FENCE = re.compile(r"(?ms)^```sh\n(.*?)^```$")


def commands() -> list[str]:
    """Return the lines of the fenced blocks, without their comments."""
    return [line.partition("  #")[0].strip() for block in FENCE.findall(GUIDE) for line in block.splitlines()]


def named_paths() -> set[str]:
    """Return what looks like a path of the tree, in backticks or in a command."""
    texts = [*re.findall(r"`([^`]+)`", FENCE.sub("", GUIDE)), *commands()]
    words = re.findall(r"(?<!\./)[\w./-]+", " ".join(texts))
    return {
        word for word in words if re.match(r"(?:gatewayd|gatewayctl|config|man|tests|\.ci|\.github)/", word)
    }


def checks(texts: Iterable[str]) -> set[str]:
    """Return which of the tools are run."""
    return {match[1] for text in texts for match in CHECK.finditer(text.replace('"', ""))}


def test_the_guide_names_paths_that_exist() -> None:
    named = named_paths()
    assert len(named) > 15
    assert {path for path in named if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_beside_the_document(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text())
    assert [link for link in links if not (document.parent / link).is_file()] == []


def test_the_tests_that_the_guide_runs_exist() -> None:
    named = re.findall(r"(tests/\S+\.py)::(\w+)", GUIDE)
    assert named
    for path, test in named:
        functions = ast.walk(ast.parse((ROOT / path).read_text()))
        assert test in {node.name for node in functions if isinstance(node, ast.FunctionDef)}


def test_the_guide_names_each_script_that_writes_files() -> None:
    scripts = {f"python -m tests.{path.stem}" for path in (ROOT / "tests").glob("write_*.py")}
    assert len(scripts) >= 3
    assert {script for script in scripts if f"| `{script}` |" not in GUIDE} == set()


def test_the_readme_leads_to_the_documents() -> None:
    readme = (ROOT / "README.md").read_text()
    for name in ("CONTRIBUTING", "CHANGELOG", "SECURITY"):
        assert f"`.github/{name}.md`" in readme


def test_the_guide_and_commits_run_the_checks_of_ci() -> None:
    run = (ROOT / ".ci" / "run").read_text().partition("check_source() {")[2].partition("\n}")[0]
    expected = checks([run])
    assert len(expected) == 5
    assert checks(re.findall(r"entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text())) == expected
    assert checks(commands()) == expected


def test_commits_fetch_no_hook() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (.*)", text) == ["local"]
    assert set(re.findall(r"language: (.*)", text)) == {"system"}


def test_the_latest_entry_of_the_changelog_is_this_version() -> None:
    versions = re.findall(r"(?m)^## (\S+) \((.+)\)$", (GITHUB / "CHANGELOG.md").read_text())
    assert versions[0] == (__version__, __released__)


def test_ten_sentences_show_the_style() -> None:
    table = GUIDE.partition("| before | after |\n|---|---|\n")[2].splitlines()
    rows = [line.strip("| ").split(" | ") for line in table]
    assert len(rows) == 10
    assert all(len(row) == 2 and row[0] != row[1] for row in rows)


def test_the_licence_is_there_and_ships() -> None:
    text = (ROOT / "LICENSE").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
