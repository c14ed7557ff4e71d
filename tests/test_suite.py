"""The rules of the suite itself: what ran is noted, what a test starts is known."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.assertion import rewrite

from tests.suite.bytecode import bytecode_of, compile_all
from tests.suite.executed import all_public, has_run, public_functions
from tests.suite.markers import is_local

SOURCE = """
def public(): return 1
def _private(): return 1
class Interface(Protocol):
    def declared(self):
        "Say what it does."
    def also(self): ...
class Class:
    def method(self): return 1
    async def later(self): return 1
    def __repr__(self): return ""
    class Inner:
        def method(self): return 1
class _Hidden:
    def method(self): return 1
"""


def test_public_functions_have_a_body_and_no_underscore() -> None:
    found = list(public_functions(ast.parse(SOURCE).body))
    assert found == ["public", "Class.method", "Class.later", "Class.Inner.method"]
    assert len(all_public()) > 3000


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the interpreter tells sys.monitoring")
async def test_the_interpreter_knows_what_ran() -> None:
    namespace: dict[str, object] = {}
    exec("def f(): pass\nasync def g(): pass\ndef h(): yield", namespace)
    f, g, h = (namespace[name] for name in "fgh")
    assert [has_run(one.__code__) for one in (f, g, h)] == [False, False, False]  # type: ignore[attr-defined]
    f()  # type: ignore[operator]
    await g()  # type: ignore[operator]
    list(h())  # type: ignore[operator]
    assert [has_run(one.__code__) for one in (f, g, h)] == [True, True, True]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("/run/gatewayd.sock", True),
        (("127.0.0.1", 80), True),
        (("::1", 80, 0, 0), True),
        (("localhost", 80), True),
        (("192.0.2.1", 80), False),
        (("example.org", 80), False),
    ],
)
def test_this_machine_is_no_network(address: object, local: bool) -> None:
    assert is_local(address) is local


GUARDED = """
import socket, subprocess, sys, pytest
from tests.suite.markers import Guard

def pytest_configure(config):
    config.pluginmanager.register(Guard())
"""
CASES = """
import socket, subprocess, sys, pytest

@pytest.mark.unit
def test_starts(): subprocess.run([sys.executable, "-c", ""], check=True)

@pytest.mark.unit
def test_connects():
    with socket.socket() as one:
        one.settimeout(0.01)
        with pytest.raises(OSError): one.connect(("192.0.2.1", 9))

@pytest.mark.unit
def test_plain():
    with socket.socket() as one, pytest.raises(OSError): one.connect(("127.0.0.1", 1))

def test_unmarked(): subprocess.run([sys.executable, "-c", ""], check=True)
"""


@pytest.mark.process
def test_a_unit_test_that_starts_something_fails(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(GUARDED)
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = unit: nothing\n")
    root = Path(__file__).parents[1]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        "-rfE",
    ]
    run = subprocess.run([*command, str(tmp_path)], cwd=root, capture_output=True, text=True, check=False)
    assert run.stdout.count("marked unit, but it used") >= 2, run.stdout
    failed = [
        line.partition("::")[2].split()[0] for line in run.stdout.splitlines() if line.startswith("FAILED")
    ]
    assert failed == ["test_starts", "test_connects"]
    assert "2 passed" in run.stdout


WHOLE = """
import pytest
from tests.suite.coverage import ExecutedFunctions
from tests.suite.source_tree import ROOT

def pytest_configure(config):
    sources = [ROOT / "gatewayd" / name for name in ("daemon.py", "ids.py")]
    config.pluginmanager.register(ExecutedFunctions(config, sources))
"""
PASSING = """
from gatewayd.ids import now

def test_passes(): assert now() > 0
"""


@pytest.mark.process
@pytest.mark.parametrize(("arguments", "status"), [(["-n", "2"], 1), ([], 1), (["-k", "passes"], 0)])
def test_a_whole_run_that_executes_too_little_fails(
    tmp_path: Path, arguments: list[str], status: int
) -> None:
    root = Path(__file__).parents[1]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text(WHOLE)
    (tmp_path / "tests" / "test_cases.py").write_text(PASSING)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntestpaths = tests\npythonpath = {root}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == status, run.stdout + run.stderr
    assert "1 passed" in run.stdout
    assert ("not executed: gatewayd/daemon.py Daemon.run" in run.stdout) is bool(status)
    assert "not executed: gatewayd/ids.py now\n" not in run.stdout


@pytest.mark.process
def test_bytecode_is_made_as_pytest_and_python_read_it(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    rewritten, plain = tmp_path / "test_one.py", tmp_path / "other.py"
    rewritten.write_text("def test_it():\n    assert 1 + 1 == 2\n")
    plain.write_text("VALUE = 3\n")
    compile_all(pytestconfig, [rewritten, plain])
    code = rewrite._read_pyc(rewritten, bytecode_of(rewritten, is_test=True))
    assert code is not None
    assert "@pytest_ar" in code.co_names
    header = bytecode_of(plain, is_test=False).read_bytes()[:16]
    assert header[:4] == importlib.util.MAGIC_NUMBER
    # A later run leaves it alone.
    before = bytecode_of(plain, is_test=False).stat().st_mtime_ns
    compile_all(pytestconfig, [rewritten, plain])
    assert bytecode_of(plain, is_test=False).stat().st_mtime_ns == before
