"""The supervised model with the real engine and the real weights; answers are judged by shape only."""

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest

from gatewayd.builtin_model import child
from gatewayd.builtin_model.source import (
    BuiltinModel,
    ModelState,
    RestartPolicy,
    backoff_delays,
    choose_threads,
)
from gatewayd.catalog.interfaces import (
    CallContext,
    EmbeddingSource,
    ForwardingSource,
    ModelSource,
    RuntimeSource,
)
from gatewayd.catalog.records import Model
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.tasks import TaskRegistry
from tests.fakes.providers.models import FakeSource

CONTEXT = CallContext(request_id="r", user_id="u")
LOAD_SECONDS = 60.0
real = pytest.mark.real("built-in model")

Make = Callable[..., BuiltinModel]


def body(**fields: Any) -> dict[str, Any]:
    question = {"role": "user", "content": "Say hello."}
    return {"model": "smollm2-135m-instruct", "messages": [question], "max_tokens": 8, **fields}


async def only_model(source: BuiltinModel) -> Model:
    (model,) = await source.list_models()
    return model


async def ended(pid: int) -> None:
    """Wait until a process is gone; one that is not our child becomes nobody's zombie."""
    descriptor = os.pidfd_open(pid)
    try:
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, gone.set)
        await asyncio.wait_for(gone.wait(), 30)
    finally:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)


def known_pid(source: BuiltinModel) -> int:
    assert source.pid is not None
    return source.pid


async def answers(source: BuiltinModel) -> bool:
    completion = await source.complete(body(), await only_model(source), CONTEXT)
    return completion.body["choices"][0]["message"]["role"] == "assistant"


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Return a function that makes models, which are closed at the end."""
    async with AsyncExitStack() as stack:
        tasks = TaskRegistry()
        stack.push_async_callback(tasks.close)

        def make_one(file: Path, folder: Path = tmp_path / "run", **options: Any) -> BuiltinModel:
            source = BuiltinModel(file, folder, tasks, threads=1, **options)
            stack.push_async_callback(source.close)
            return source

        yield make_one


@pytest.fixture
async def started(make: Make, weights: Path) -> BuiltinModel:
    source = make(weights)
    await source.start()
    await source.ready(LOAD_SECONDS)
    return source


# The real model -------------------------------------------------------------------------------------------


@real
async def test_it_completes(started: BuiltinModel) -> None:
    completion = await started.complete(body(), await only_model(started), CONTEXT)

    answer = completion.body
    assert answer["object"] == "chat.completion"
    assert answer["model"] == "smollm2-135m-instruct"
    (choice,) = answer["choices"]
    assert choice["message"]["role"] == "assistant"
    assert isinstance(choice["message"]["content"], str)
    assert choice["finish_reason"] in {"stop", "length"}
    assert 0 < answer["usage"]["completion_tokens"] <= 8


@real
async def test_it_streams_and_tells_usage(started: BuiltinModel) -> None:
    asked = body(stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in started.stream(asked, await only_model(started), CONTEXT)]

    events = [event for chunk in chunks for event in chunk.events]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    finished = [c["finish_reason"] for e in events for c in e["choices"] if c["finish_reason"]]
    assert len(finished) == 1
    assert finished[0] in {"stop", "length"}
    assert events[-1]["usage"]["completion_tokens"] > 0


@real
async def test_it_keeps_a_json_schema(started: BuiltinModel) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}
    completion = await started.complete(
        body(response_format=wanted, max_tokens=24), await only_model(started), CONTEXT
    )
    assert completion.body["choices"][0]["message"]["content"].lstrip().startswith("{")


FORCED = {
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "add",
                "parameters": {
                    "type": "object",
                    "properties": {"n": {"type": "integer", "enum": [7]}},
                    "required": ["n"],
                    "additionalProperties": False,
                },
            },
        }
    ],
    "tool_choice": "required",
    "max_tokens": 64,
}


@real
async def test_it_calls_a_tool_that_it_is_forced_to(started: BuiltinModel) -> None:
    model = await only_model(started)
    completion = await started.complete(body(**FORCED), model, CONTEXT)
    chunks = [chunk async for chunk in started.stream(body(**FORCED, stream=True), model, CONTEXT)]
    (whole,) = completion.body["choices"]
    (streamed,) = [choice for chunk in chunks for event in chunk.events for choice in event["choices"]]
    for choice, message in ((whole, whole["message"]), (streamed, streamed["delta"])):
        assert choice["finish_reason"] == "tool_calls"
        (call,) = message["tool_calls"]
        assert call["function"]["name"] == "add"
        assert orjson.loads(call["function"]["arguments"]) == {"n": 7}
    assert streamed["delta"]["tool_calls"][0]["index"] == 0


@real
async def test_more_requests_than_slots_are_all_answered(started: BuiltinModel) -> None:
    assert all(await asyncio.gather(*(answers(started) for _ in range(24))))


@real
async def test_a_closed_stream_frees_its_slot(started: BuiltinModel) -> None:
    """All slots begin answers that would fill their contexts; the next answers come only when these end."""
    model = await only_model(started)
    endless = body(stream=True, max_tokens=4000, ignore_eos=True)
    streams = [started.stream(endless, model, CONTEXT) for _ in range(4)]
    await asyncio.gather(*(anext(stream) for stream in streams))
    for stream in streams:
        await stream.aclose()

    fifth = started.stream(endless, model, CONTEXT)
    try:
        assert (await asyncio.wait_for(anext(fifth), 30)).events
    finally:
        await fifth.aclose()


@real
async def test_it_continues_a_text(started: BuiltinModel) -> None:
    asked = {"model": started.model_id, "prompt": "Once upon a time", "max_tokens": 4, "ignore_eos": True}
    whole = await started.forward("POST", "/completions", asked)
    answer = orjson.loads(b"".join([read async for read in whole]))
    assert (whole.status, answer["object"]) == (200, "text_completion")
    assert isinstance(answer["choices"][0]["text"], str)

    streamed = await started.forward("POST", "/completions", {**asked, "stream": True})
    assert streamed.content_type.startswith("text/event-stream")
    frames = b"".join([read async for read in streamed]).split(b"\n\n")
    assert frames[-2:] == [b"data: [DONE]", b""]
    assert len(frames) > 4


@real
async def test_a_path_that_the_server_lacks(started: BuiltinModel) -> None:
    with pytest.raises(GatewayError) as caught:
        await started.forward("POST", "/nothing", {})
    assert caught.value.kind is ErrorKind.NOT_FOUND


@real
async def test_a_prompt_over_the_context_is_a_bad_request(started: BuiltinModel) -> None:
    long = [{"role": "user", "content": "word " * 6000}]
    with pytest.raises(GatewayError) as caught:
        await started.complete(body(messages=long), await only_model(started), CONTEXT)
    assert caught.value.kind is ErrorKind.INVALID_REQUEST


@real
async def test_a_killed_process_is_started_again(started: BuiltinModel) -> None:
    first = known_pid(started)
    os.kill(first, signal.SIGKILL)
    await ended(first)
    while started.state is ModelState.READY:
        await asyncio.sleep(0)

    assert started.state is ModelState.STARTING
    assert await answers(started)
    assert started.pid not in {None, first}


@real
async def test_a_stream_that_breaks_off_says_so(started: BuiltinModel) -> None:
    endless = body(stream=True, max_tokens=4000, ignore_eos=True)
    stream = started.stream(endless, await only_model(started), CONTEXT)
    assert (await anext(stream)).events
    os.kill(known_pid(started), signal.SIGKILL)

    with pytest.raises(GatewayError) as caught:
        async for _ in stream:
            pass
    assert caught.value.kind is ErrorKind.UPSTREAM_FAILED


@real
async def test_the_process_sees_no_secret(
    make: Make,
    weights: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    source = make(weights)
    await source.start()
    await source.ready(LOAD_SECONDS)

    environment = Path(f"/proc/{source.pid}/environ").read_bytes()
    names = {entry.split(b"=")[0] for entry in environment.split(b"\0") if entry}
    assert names == {b"PATH", b"LANG"}
    assert b"sk-canary" not in environment


@real
async def test_only_its_owner_may_connect(started: BuiltinModel, tmp_path: Path) -> None:
    socket = tmp_path / "run" / "model.sock"
    assert stat.S_ISSOCK(socket.stat().st_mode)
    assert socket.stat().st_mode & 0o077 == 0


@real
async def test_a_long_path_gets_a_socket_elsewhere(make: Make, weights: Path, tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    source = make(weights, folder)
    await source.start()
    await source.ready(LOAD_SECONDS)

    assert await answers(source)
    assert list(folder.iterdir()) == []


@real
async def test_close_ends_the_process(started: BuiltinModel, tmp_path: Path) -> None:
    pid = known_pid(started)
    await started.close()

    assert started.state is ModelState.STOPPED
    assert not Path(f"/proc/{pid}").exists()
    assert list((tmp_path / "run").iterdir()) == []
    with pytest.raises(GatewayError) as caught:
        await answers(started)
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE


@real
async def test_a_file_that_is_no_model_is_told(make: Make, weights: Path, tmp_path: Path) -> None:
    bad = tmp_path / "secret-folder" / "half.gguf"
    bad.parent.mkdir()
    with weights.open("rb") as whole:
        bad.write_bytes(whole.read(1 << 20))
    source = make(bad)
    await source.start()

    with pytest.raises(GatewayError) as caught:
        await source.ready(LOAD_SECONDS)
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert caught.value.message.startswith("cannot run the built-in model 'half': cannot load 'half.gguf': ")
    assert "secret-folder" not in caught.value.message
    assert caught.value.retry_after is not None
    assert source.state is ModelState.FAILED
    assert (await only_model(source)).id == "half"


# Without the engine: another server in its place ------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that is run in the place of the real server."""
    path = tmp_path / "server.py"
    monkeypatch.setattr(child, "SERVER", path)
    return path


async def test_a_request_waits_no_longer_than_its_patience(make: Make, server: Path) -> None:
    server.write_text("import sys; sys.stdin.read()")
    source = make(Path("never.gguf"), pace=RestartPolicy(patience=0.01))
    await source.start()

    assert source.state is ModelState.STARTING
    with pytest.raises(GatewayError) as caught:
        await answers(source)
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE
    assert caught.value.message == "cannot run the built-in model 'never': it is being loaded"
    assert caught.value.retry_after == 1


async def test_a_start_that_takes_too_long_is_given_up(make: Make, server: Path) -> None:
    server.write_text("import sys; sys.stdin.read()")
    source = make(Path("slow.gguf"), pace=RestartPolicy(load=0.01))
    await source.start()

    with pytest.raises(GatewayError, match=r"it was not ready after 0\.01 s"):
        await source.ready(LOAD_SECONDS)
    with pytest.raises(GatewayError, match=r"it was not ready after 0\.01 s"):
        await answers(source)


async def test_it_is_started_until_it_stays(make: Make, server: Path, tmp_path: Path) -> None:
    """The first two processes fail, the third one stays."""
    server.write_text(
        "import pathlib, sys\n"
        f"tries = pathlib.Path({str(tmp_path / 'tries')!r})\n"
        "tries.write_text(tries.read_text() + 'x' if tries.exists() else 'x')\n"
        "if len(tries.read_text()) < 3: sys.exit(3)\n"
        'print(\'{"listening": "x"}\', flush=True)\n'
        "sys.stdin.read()\n"
    )
    source = make(Path("late.gguf"), pace=RestartPolicy(first_delay=0.01))
    await source.start()
    with pytest.raises(GatewayError, match=r"cannot load 'late\.gguf': it ended with status 3"):
        await source.ready(LOAD_SECONDS)

    while source.state is not ModelState.READY:
        await asyncio.sleep(0.01)
    assert (tmp_path / "tries").read_text() == "xxx"
    assert source.trouble == ""


@pytest.mark.parametrize("steps", range(8))
async def test_it_can_be_closed_at_any_moment_of_its_start(make: Make, server: Path, steps: int) -> None:
    server.write_text("import sys; sys.stdin.read()")
    source = make(Path("slow.gguf"))
    await source.start()
    for _ in range(steps):
        await asyncio.sleep(0)
    await source.close()
    assert source.state is ModelState.STOPPED
    assert source.pid is None


def test_pauses_between_starts_grow() -> None:
    pauses = backoff_delays(RestartPolicy(first_delay=1.0, last_delay=5.0))
    assert [next(pauses) for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


async def test_it_gives_no_embeddings_and_passes_on(make: Make) -> None:
    source = make(Path("mine.gguf"))
    assert isinstance(source, ForwardingSource)
    assert not isinstance(source, EmbeddingSource | RuntimeSource)
    with pytest.raises(GatewayError) as caught:
        await source.forward("POST", "/completions", {})
    assert caught.value.kind is ErrorKind.UPSTREAM_UNREACHABLE


async def test_a_server_that_cannot_be_passed_on_to(make: Make, server: Path) -> None:
    server.write_text('import sys; print(\'{"listening": "x"}\', flush=True); sys.stdin.read()')

    def other(_: Path) -> ModelSource:
        return FakeSource()

    source = make(Path("mine.gguf"), make_source=other)
    await source.start()
    await source.ready(LOAD_SECONDS)
    with pytest.raises(GatewayError, match="/completions") as caught:
        await source.forward("POST", "/completions", {})
    assert caught.value.kind is ErrorKind.NOT_FOUND


MUTE = """\
import json, socket, sys
path = sys.argv[sys.argv.index("--socket") + 1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
print(json.dumps({"listening": path}), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("is_stream", [False, True], ids=["whole", "stream"])
async def test_a_process_that_hangs_is_killed_and_its_request_told(
    make: Make, server: Path, *, is_stream: bool
) -> None:
    server.write_text(MUTE)
    source = make(Path("mute.gguf"), pace=RestartPolicy(probe=0.01, silence=0.01, first_delay=0.01))
    await source.start()
    await source.ready(LOAD_SECONDS)
    first = known_pid(source)

    with pytest.raises(GatewayError, match=r"'mute' did not answer for 0\.01 s") as caught:
        if is_stream:
            await anext(source.stream(body(), await only_model(source), CONTEXT))
        else:
            await answers(source)
    assert caught.value.kind is ErrorKind.TIMEOUT
    while source.pid in {None, first} or source.state is not ModelState.READY:
        await asyncio.sleep(0.01)


async def test_a_process_that_nobody_waits_for_is_left_alone(make: Make, server: Path) -> None:
    server.write_text('import sys; print(\'{"listening": "x"}\', flush=True); sys.stdin.read()')
    silent = FakeSource(hold=asyncio.Event())
    source = make(
        Path("mute.gguf"), pace=RestartPolicy(probe=0.001, silence=0.001), make_source=lambda _: silent
    )
    await source.start()
    await source.ready(LOAD_SECONDS)
    for _ in range(10):
        await asyncio.sleep(0.001)
    assert silent.listed == 0
    assert source.state is ModelState.READY


async def test_a_model_that_was_never_started_is_listed(make: Make) -> None:
    model = await only_model(make(Path("mine.gguf")))
    assert (model.id, model.upstream_id) == ("mine", "mine")
    assert (model.owned_by, model.connection_type) == ("local", "local")


@pytest.mark.parametrize(
    ("wanted", "cores", "threads"),
    [(0, 1, 1), (0, 2, 1), (0, 4, 2), (0, 64, 4), (1, 8, 1), (8, 8, 7), (3, 1, 1), (6, 8, 6)],
)
def test_a_core_is_left_free(wanted: int, cores: int, threads: int) -> None:
    assert choose_threads(wanted, cores) == threads
