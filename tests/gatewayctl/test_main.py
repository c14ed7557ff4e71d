"""The root command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gatewayctl
import gatewayd
from gatewayctl.main import main, wanted_output
from gatewayctl.render import Output
from tests.fakes.daemons.control_socket import Control, Ctl


def test_both_programs_have_one_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert gatewayctl.__version__ == gatewayd.__version__
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gatewayctl {gatewayctl.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["user"], ["nonsense"], ["user", "list", "--bogus"], ["user", "show"], ["-o", "xml"]]
)
def test_usage_failures(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("gatewayctl: ")
    assert "--help" in told.err


@pytest.mark.parametrize(
    "arguments", [["-o", "json", "user", "list", "-x"], ["user", "list", "-x", "-ojsonl"]]
)
def test_usage_failures_as_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert json.loads(told.err)["error"]["kind"] == "usage"


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ([], Output.TABLE),
        (["-o", "json"], Output.JSON),
        (["--output=name", "-ojsonl"], Output.JSONL),
        (["-o"], Output.TABLE),
        (["-o", "xml"], Output.TABLE),
    ],
)
def test_the_form_that_is_asked_for(arguments: list[str], output: Output) -> None:
    assert wanted_output(arguments) is output


async def test_no_daemon(ctl: Ctl, tmp_path: Path) -> None:
    ctl.socket = tmp_path / "absent.sock"
    told = await ctl("health")
    assert (told.code, told.out) == (3, "")
    assert "absent.sock" in told.err
    assert "hint:" in told.err


async def test_the_environment_names_socket_and_form(
    control: Control, ctl: Ctl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAYCTL_SOCKET", str(control.socket))
    monkeypatch.setenv("GATEWAYCTL_OUTPUT", "name")
    assert await control.call(main, ["model", "list"]) == 0
    assert capsys.readouterr().out == "alpha\nbeta/b:1\n"
    assert await control.call(main, ["-o", "json", "model", "list"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == "alpha"


def test_interruption_has_its_own_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gatewayctl.transport.Transport.call", interrupt, raising=False)
    assert main(["--socket", str(tmp_path / "s"), "health"]) == 130


@pytest.mark.parametrize("noun", ["user", "chat"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.process
def test_shell_completion(shell: str, noun: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gatewayctl", noun, "l"],
        env={
            "_GATEWAYCTL_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_ARGS": f"gatewayctl {noun} l",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "COMP_WORDS": f"gatewayctl {noun} l",
            "COMP_CWORD": "2",
            "PYTHONPATH": str(Path(gatewayctl.__file__).parents[1]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "list" in done.stdout, done.stderr


@pytest.mark.process
def test_what_draws_markdown_is_not_loaded_before_it_is_needed() -> None:
    program = "import sys, gatewayctl.main; print([name for name in sys.modules if 'markdown' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("path", [[], ["user"], ["user", "list"], ["chat"], ["health"]])
def test_help_has_a_short_name(path: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    told = capsys.readouterr().out
    assert main([*path, "-h"]) == 0
    assert capsys.readouterr().out == told
    assert "Usage:" in told


def test_what_the_system_refuses_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "/a/file")

    monkeypatch.setattr("gatewayctl.transport.Transport.call", refuse, raising=False)
    assert main(["--socket", str(tmp_path / "s"), "health"]) == 1
    assert capsys.readouterr().err == "gatewayctl: cannot go on: permission denied: /a/file\n"


def test_a_directory_that_is_gone_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["--socket", str(tmp_path / "s"), "ingest", ".", "--collection", "c"]) == 2
    assert capsys.readouterr().err.startswith("gatewayctl: cannot tell where . is: no such file")
