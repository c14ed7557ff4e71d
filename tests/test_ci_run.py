""".ci/run: its arguments, which tools it takes, and that lint and unit install nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# What the script itself needs beside bash.
COREUTILS = ("cat", "dirname", "timeout")


def make_program(path: Path, log: Path, status: int = 0) -> None:
    """Make a program that writes its name, folder and arguments to a log and ends."""
    path.write_text(f'#!{shutil.which("bash")}\necho "${{0##*/}} $PWD $*" >>"{log}"\nexit {status}\n')
    path.chmod(0o755)


class Checkout:
    """A tree with .ci/run and nothing else, an environment with tools, and a PATH with few programs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.path, self.log = folder / "tree", folder / "path", folder / "log"
        for each in (self.root / ".ci", self.root / "man", self.path):
            each.mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "run", self.root / ".ci" / "run")
        (self.root / "man" / "page.1").touch()
        for name in COREUTILS:
            (self.path / name).symlink_to(shutil.which(name) or name)
        (self.path / "bash").symlink_to(shutil.which("bash") or "bash")
        for name in ("apt-get", "sudo", "mandoc"):
            make_program(self.path / name, self.log)

    def install(self, environment: Path, *tools: str, status: int = 0) -> None:
        """Put tools into a virtual environment."""
        (environment / "bin").mkdir(parents=True)
        for name in tools:
            make_program(environment / "bin" / name, self.log, status)

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script."""
        return subprocess.run(
            [str(self.root / ".ci" / "run"), *arguments],
            env={"PATH": str(self.path), "HOME": str(self.root), **variables},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def calls(self) -> list[str]:
        """Return what was run, with its arguments."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.replace(f" {self.root} ", " ") for line in lines]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


LINT_TOOLS = ("ruff", "mypy", "lint-imports")
LINT_CALLS = ["ruff check .", "ruff format --check .", "mypy ", "lint-imports "]


@pytest.mark.parametrize("arguments", [["lnit"], [""], ["--install"], ["lint", "unit"], ["all", "-v"]])
def test_arguments_that_are_unknown_are_refused(checkout: Checkout, arguments: list[str]) -> None:
    run = checkout.run(*arguments)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("usage: .ci/run [lint | unit | all]\n")
    assert checkout.calls() == []


def test_help_tells_the_modes(checkout: Checkout) -> None:
    run = checkout.run("--help")
    assert (run.returncode, run.stderr) == (0, "")
    assert all(f"\n  {mode} " in run.stdout for mode in ("lint", "unit", "all"))


@pytest.mark.parametrize("place", [".venv-test", ".venv", "elsewhere"])
def test_lint_runs_every_check_in_the_working_tree(checkout: Checkout, place: str) -> None:
    checkout.install(checkout.root / place, *LINT_TOOLS)
    active = {"VIRTUAL_ENV": str(checkout.root / place)} if place == "elsewhere" else {}
    run = checkout.run("lint", **active)
    assert (run.returncode, run.stderr) == (0, "")
    assert checkout.calls() == [*LINT_CALLS, "mandoc -Tlint -Wwarning man/page.1"]


def test_an_active_environment_without_the_tools_is_passed_over(checkout: Checkout) -> None:
    checkout.install(checkout.root / "active", "ruff", "mypy")
    checkout.install(checkout.root / ".venv", *LINT_TOOLS)
    assert checkout.run("lint", VIRTUAL_ENV=str(checkout.root / "active")).returncode == 0
    assert len(checkout.calls()) == 5


def test_a_check_that_fails_leaves_the_others_their_turn(checkout: Checkout) -> None:
    checkout.install(checkout.root / ".venv", *LINT_TOOLS, status=3)
    run = checkout.run("lint")
    assert run.returncode == 1
    assert len(checkout.calls()) == 5
    assert "FAILED: [ruff check] [ruff format] [mypy] [import contracts] after" in run.stdout


@pytest.mark.parametrize("mode", ["lint", "unit"])
def test_a_missing_environment_is_told_and_not_made(checkout: Checkout, mode: str) -> None:
    run = checkout.run(mode)
    assert run.returncode == 1
    assert "no virtual environment has" in run.stderr
    assert "pip install -e '.[local,test]'" in run.stderr
    assert checkout.calls() == []


def test_a_missing_program_is_told_and_not_installed(checkout: Checkout) -> None:
    (checkout.path / "mandoc").unlink()
    checkout.install(checkout.root / ".venv", *LINT_TOOLS)
    run = checkout.run("lint")
    assert run.returncode == 1
    assert "mandoc is not on the PATH" in run.stderr
    assert checkout.calls() == []


@pytest.mark.parametrize("status", [0, 5])
def test_unit_runs_the_tests_with_that_marker(checkout: Checkout, status: int) -> None:
    checkout.install(checkout.root / ".venv", "pytest", status=status)
    assert checkout.run("unit").returncode == (1 if status else 0)
    assert checkout.calls() == ["pytest -m unit -n 2"]


@pytest.mark.parametrize("arguments", [[], ["all"]])
def test_all_installs_what_is_missing(checkout: Checkout, arguments: list[str]) -> None:
    for name in ("apt-get", "sudo"):
        make_program(checkout.path / name, checkout.log, status=9)
    for name in ("id", "mktemp", "rm"):
        (checkout.path / name).symlink_to(shutil.which(name) or name)
    run = checkout.run(*arguments, TMPDIR=str(checkout.path))
    assert run.returncode == 1
    assert "cannot install the programs that the tests start" in run.stderr
    first = "apt-get update -q" if os.geteuid() == 0 else "sudo -n apt-get update -q"
    assert checkout.calls() == [f"{first.split()[0]} {Path.cwd()} {first.partition(' ')[2]}"]
