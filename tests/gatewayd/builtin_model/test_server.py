"""The model's process as its parent sees it: arguments, standard streams, signals, ends."""

import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.real("built-in model")

SECONDS = 60

MIDDLE = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
child.wait()
"""


@pytest.fixture
def module(weights: Path) -> ModuleType:
    """Return the server's module, which needs the engine to be installed."""
    return importlib.import_module("gatewayd.builtin_model.server")


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return tmp_path / "model.sock"


@pytest.fixture
def command(module: ModuleType, weights: Path, address: Path) -> list[str]:
    start = [sys.executable, "-P", str(module.__file__)]
    return [*start, "--weights", str(weights), "--socket", str(address), "--alias", "m", "--context", "512"]


@pytest.fixture
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start the server and wait for its line."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            assert process.stdout is not None
            process.first_line = process.stdout.readline()  # type: ignore[attr-defined]
            yield process
        finally:
            process.kill()


def health(address: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(SECONDS)
        client.connect(str(address))
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        return client.recv(65536)


def test_it_says_once_where_it_listens(running: "subprocess.Popen[bytes]", address: Path) -> None:
    assert json.loads(running.first_line) == {"listening": str(address)}  # type: ignore[attr-defined]
    assert health(address).startswith(b"HTTP/1.1 200")

    output, _ = running.communicate(timeout=SECONDS)
    assert output == b""
    assert running.returncode == 0


def test_it_ends_at_the_end_of_its_input(running: "subprocess.Popen[bytes]") -> None:
    assert running.stdin is not None
    running.stdin.write(b"something to be ignored")
    running.stdin.close()
    running.stdin = None
    assert running.wait(SECONDS) == 0


def test_it_ends_by_sigterm_and_not_by_ctrl_c(running: "subprocess.Popen[bytes]", address: Path) -> None:
    running.send_signal(signal.SIGINT)
    assert health(address).startswith(b"HTTP/1.1 200")
    running.terminate()
    assert running.wait(SECONDS) == -signal.SIGTERM


def test_it_ends_with_its_parent(command: list[str]) -> None:
    """The input stays open here, so that only the parent's death can end it."""
    with ExitStack() as stack:
        reading, writing = os.pipe()
        stack.callback(os.close, writing)
        parent = stack.enter_context(
            subprocess.Popen([sys.executable, "-c", MIDDLE, *command], stdin=reading, stdout=subprocess.PIPE)
        )
        os.close(reading)
        assert parent.stdout is not None
        assert parent.stdout.readline()
        (child,) = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        descriptor = os.pidfd_open(int(child))
        stack.callback(os.close, descriptor)

        parent.kill()
        parent.wait(SECONDS)
        ready, _, _ = select.select([descriptor], [], [], SECONDS)
        assert ready


def test_a_socket_left_behind_is_replaced(command: list[str], address: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(address))
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"listening": str(address)}


def test_a_bad_model_is_told_on_standard_error(command: list[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"not a model")
    command[command.index("--weights") + 1] = str(bad)
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)

    assert run.returncode == 1
    assert run.stdout == b""
    assert b"GGUF" in run.stderr
    assert b"Traceback" not in run.stderr


def test_what_others_print_goes_to_standard_error(
    module: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    kept = os.dup(1)
    try:
        own = module.take_stdout()
        os.write(1, b"noise\n")
        os.write(own, b"line\n")
        os.close(own)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert capfd.readouterr() == ("line\n", "noise\n")


def test_a_wrong_command_line_is_refused(module: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        module.parse(["--weights", "w.gguf"])
    assert caught.value.code == 2
    assert "--socket" in capsys.readouterr().err


def test_the_engine_is_kept_within_bounds(module: ModuleType) -> None:
    options = module.parse(["--weights", "w.gguf", "--socket", "s.sock", "--alias", "m", "--threads", "3"])
    params = module.engine_parameters(options)

    assert params.model.path == "w.gguf"
    assert params.hostnames == ["s.sock"]
    assert params.model_alias == {"m"}
    assert (params.cpuparams.n_threads, params.cpuparams_batch.n_threads) == (3, 3)
    assert (params.n_parallel, params.n_ctx) == (4, 4 * 4096)
    assert params.offline is True
    assert params.ui is False
    assert params.endpoint_slots is False
    assert params.cache_ram_mib == 0
