"""One run of a process, with small scripts in the place of the real server."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gatewayd.builtin_model import child as builtin_model_child
from gatewayd.builtin_model.child import MAX_LINE_BYTES, BuiltinProcess, ChildError, EngineOptions
from gatewayd.tasks import TaskRegistry

Spawn = Callable[[str], Awaitable[BuiltinProcess]]

READY = """
import sys
print('{"listening": "x"}', flush=True)
"""


@pytest.fixture
def options(tmp_path: Path) -> EngineOptions:
    return EngineOptions(weights=tmp_path / "secret-folder" / "own.gguf", model_id="own", threads=1)


@pytest.fixture
async def spawn(
    tmp_path: Path, options: EngineOptions, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Spawn]:
    """Return a function that runs a script as the server."""
    script = tmp_path / "server.py"
    monkeypatch.setattr(builtin_model_child, "SERVER", script)
    async with AsyncExitStack() as stack:
        tasks = TaskRegistry()
        stack.push_async_callback(tasks.close)

        async def run(source: str) -> BuiltinProcess:
            script.write_text(source)
            child = await BuiltinProcess.spawn(options, tmp_path / "model.sock", tasks)
            stack.push_async_callback(child.close_pipes)
            stack.push_async_callback(child.end_process)
            return child

        yield run


async def refusal(child: BuiltinProcess, deadline: float = 30.0) -> str:
    with pytest.raises(ChildError) as caught:
        await child.listening(deadline)
    return str(caught.value)


async def test_the_command_line_says_everything(spawn: Spawn, options: EngineOptions, tmp_path: Path) -> None:
    child = await spawn("import json, sys; print(json.dumps({'listening': sys.argv}), file=sys.stderr)")
    await child.wait()

    given = json.loads(child.failure_reason())["listening"][1:]
    told = dict(zip(given[::2], given[1::2], strict=True))
    assert told == {
        "--weights": "own.gguf",
        "--socket": str(tmp_path / "model.sock"),
        "--alias": "own",
        "--threads": "1",
        "--slots": "4",
        "--context": "4096",
    }
    assert options.arguments(tmp_path)[0] == sys.executable


async def test_the_environment_is_small_and_the_gateway_cannot_be_shadowed(
    spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBUI_SECRET_KEY", "canary")
    child = await spawn("import os, sys; sys.exit(repr([sorted(os.environ), sys.path]))")
    await child.wait()

    assert "canary" not in child.failure_reason()
    assert child.failure_reason().startswith(
        "[['LANG', 'LC_CTYPE', 'PATH']"
    ) or child.failure_reason().startswith("[['LANG', 'PATH']")
    assert repr(str(tmp_path)) not in child.failure_reason()


async def test_a_ready_process_is_waited_for_and_ended(spawn: Spawn) -> None:
    child = await spawn(READY + "sys.stdin.read()")
    await child.listening(30)
    assert Path(f"/proc/{child.pid}").exists()
    assert child.end() == "it still runs"

    await asyncio.gather(child.end_process(), child.end_process())
    assert child.end() == "it was ended by signal 15 (Terminated)"


async def test_a_process_that_does_not_end_is_killed(spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin_model_child, "STOP_SECONDS", 0.01)
    child = await spawn("import signal; signal.signal(15, signal.SIG_IGN)" + READY + "sys.stdin.read()")
    await child.listening(30)
    await child.end_process()
    assert child.end() == "it was ended by signal 9 (Killed)"


async def test_the_first_error_of_the_engine_is_the_cause(spawn: Spawn, options: EngineOptions) -> None:
    said = "\n".join(
        [
            "some talk",
            f"0.00.004.760 E srv    load_model: no tensors in {options.weights}",
            "0.00.004.769 E llama_model_load: error loading model",
            "0.00.004.772 E srv          init: exiting due to model loading error",
        ]
    )
    child = await spawn(f"import sys; print({said!r}, file=sys.stderr); sys.exit(1)")
    assert await refusal(child) == "cannot load 'own.gguf': no tensors in own.gguf"


async def test_without_an_error_the_last_line_is_told(spawn: Spawn) -> None:
    child = await spawn("import no_such_engine")
    assert await refusal(child) == (
        "cannot load 'own.gguf': ModuleNotFoundError: No module named 'no_such_engine'"
    )


async def test_a_library_that_the_machine_lacks_is_named(spawn: Spawn) -> None:
    said = "libgomp.so.1: cannot open shared object file: No such file or directory"
    assert await refusal(await spawn(f"raise ImportError({said!r})")) == (
        "cannot load 'own.gguf': this machine lacks the library libgomp.so.1"
        " (README.md, Try it, names its package)"
    )


async def test_a_silent_end_is_told(spawn: Spawn) -> None:
    assert (
        await refusal(await spawn("raise SystemExit(7)")) == "cannot load 'own.gguf': it ended with status 7"
    )


async def test_a_line_of_something_else_is_refused(spawn: Spawn) -> None:
    child = await spawn("import sys; print('hello', flush=True); sys.stdin.read()")
    assert await refusal(child) == "it did not report its socket"


async def test_a_start_has_a_limit(spawn: Spawn) -> None:
    assert await refusal(await spawn("import sys; sys.stdin.read()"), 0.01) == "it was not ready after 0.01 s"


async def test_lines_without_an_end_take_little_room(spawn: Spawn) -> None:
    child = await spawn("import sys; sys.stderr.write('x' * 1_000_000 + 'y')")
    await child.wait()
    assert len(child.failure_reason()) == MAX_LINE_BYTES


async def test_a_process_that_cannot_be_started_is_told(options: EngineOptions, tmp_path: Path) -> None:
    tasks = TaskRegistry()
    with pytest.raises(ChildError, match="its process cannot be started: No such file or directory"):
        await BuiltinProcess.spawn(options, tmp_path / "gone" / "model.sock", tasks)
    assert tasks.list() == {}
