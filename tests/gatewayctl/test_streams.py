"""What cannot be written: full disks, closed streams, encodings that lack characters."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gatewayctl
from gatewayctl.failures import CommandError
from gatewayctl.streams import ESCAPES, GuardedStream, QuietStream, prepared_streams
from tests.fakes.daemons.control_socket import Control, Ctl

ENVIRONMENT = {"PYTHONPATH": str(Path(gatewayctl.__file__).parents[1]), "PATH": os.environ["PATH"]}


def run(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the shell; `ctl` is gatewayctl."""
    script = f'ctl() {{ "{sys.executable}" -m gatewayctl "$@"; }}\n{command}'
    return subprocess.run(
        ["/bin/bash", "-c", script],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("what", ["--help", "--version", "user --help"])
def test_a_full_disk_is_a_sentence(what: str) -> None:
    done = run(f"ctl {what} > /dev/full")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "gatewayctl: cannot write the answer: no space left on device\n"


@pytest.mark.parametrize("what", ["--version", "health", "user list"])
def test_a_closed_standard_output_is_told_before_anything_is_done(what: str) -> None:
    done = run(f"ctl {what} >&-")
    assert done.returncode == 1
    assert done.stderr == "gatewayctl: cannot write the answer: standard output is closed\n"


def test_closed_input_and_errors_are_no_failure_of_their_own(tmp_path: Path) -> None:
    missing = tmp_path / "none.sock"
    assert run(f"ctl --socket {missing} health 2>&-").returncode == 3
    done = run(f"ctl --socket {missing} collection delete x <&-")
    assert (done.returncode, "add --yes" in done.stderr) == (2, True)


def test_a_reader_that_leaves_is_no_failure() -> None:
    done = run("ctl --help | head -1; echo ${PIPESTATUS[0]}")
    assert (done.stdout.splitlines()[1:], done.stderr) == (["0"], "")


async def test_what_an_encoding_lacks_is_written_as_in_json(
    ctl: Ctl, control: Control, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ctl("user", "create", "--email", "ada@example.org", "--name", "Zoë \U0001f600", "--generate")
    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding="ascii"))
    for output in ("table", "json"):
        assert (await ctl("user", "show", "ada@example.org", "-o", output)).code == 0
    assert kept.getvalue().count(rb"Zo\u00eb \ud83d\ude00") == 2


class Failing(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_failure_is_told_and_a_reader_that_left_is_passed_on() -> None:
    stream = GuardedStream(Failing())
    with pytest.raises(CommandError, match="cannot write the answer: input/output error") as failure:
        stream.writelines(["x"])
    assert (failure.value.kind, failure.value.exit_code) == ("system", 1)
    with pytest.raises(BrokenPipeError):
        stream.flush()


def test_streams_are_as_before_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    own = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", own)
    with prepared_streams():
        assert own.errors == ESCAPES
        assert isinstance(sys.stdout, GuardedStream)
        assert isinstance(sys.stderr, QuietStream)
    assert (sys.stdout, own.errors) == (own, "strict")


@pytest.mark.parametrize(
    ("words", "code"), [("--socket none health", 3), ("no-such-noun", 2), ("health >&-", 1)]
)
def test_the_exit_code_is_that_of_the_failure_where_it_cannot_be_told(words: str, code: int) -> None:
    done = run(f"ctl {words} 2>/dev/full; echo $? >&2")
    assert (done.stdout, done.stderr) == ("", f"{code}\n")


def test_talk_that_cannot_be_written_is_lost() -> None:
    stream = QuietStream(Failing())
    assert stream.write("x") == 1
    stream.flush()
