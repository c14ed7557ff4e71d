import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.isolation import process
from gatewayd.plugins.isolation.memory import MAX_OOM_SCORE, OOM_SCORE_INCREASE
from gatewayd.plugins.isolation.messages import PipeData
from gatewayd.plugins.isolation.plugin import IsolatedPlugin
from gatewayd.plugins.isolation.process import PluginProcess
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.tasks import TaskRegistry
from tests.fakes.plugins.isolated import Isolating, isolated
from tests.fakes.plugins.memory import plugin_of, scope_of

MB = 1 << 20

HOLDERS = {
    "a backtracking expression": "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
    "a sum": "sum(range(10**12))",
}

SAYING = """
    import gc, struct, json, threading
    from gatewayd.workers import ParentPipe
    def say(header, blob=b"", more=0):
        pipe = next(one for one in gc.get_objects() if isinstance(one, ParentPipe))._answers
        text = json.dumps(header).encode()
        pipe.write(struct.pack(">II", len(text), len(blob) + more) + text + blob)
        pipe.flush()
    def write(data):
        pipe = next(one for one in gc.get_objects() if isinstance(one, ParentPipe))._answers
        pipe.write(data)
        pipe.flush()
    class Pipe:
        async def pipe(self, body):
            {code}
            return "unharmed"
"""

MALFORMED = {
    "a length over the bound": "write(b'\\xff' * 64)",
    "a header over the bound": "write(struct.pack('>II', 1 << 17, 0))",
    "a header that is no JSON": "write(struct.pack('>II', 4, 0) + b'{{{{')",
    "a header that is a list": "write(struct.pack('>II', 2, 0) + b'[]')",
    "an unknown message": "say({'tell': 'nonsense'})",
    "no message": "say({})",
    "a value that is no JSON": "say({'tell': 'facts'}, b'{')",
    "a value that nests deep": "say({'tell': 'facts'}, b'[' * 1000 + b']' * 1000)",
    "an attachment that is not there": "say({'tell': 'facts', 'attached': 7}, b'{}')",
    "facts that are none": "say({'tell': 'facts'}, b'{\"methods\": 1}')",
    "a line of the log that is none": "say({'tell': 'log'}, b'{\"level\": 20}')",
    "a long line of the log": "say({'tell': 'log'}, json.dumps({'level': 20, 'fields': {},"
    " 'message': 'x' * 10000}).encode())",
    "more than it may tell": "say({'tell': 'facts'}, b'[' + b' ' * (2 << 20) + b']')",
    "a question without a number": "say({'ask': []})",
    "an answer of a strange kind": "say({'number': 'x'}); say({'number': []})",
}


async def outcome(loaded: IsolatedPlugin) -> str:
    try:
        return str(await loaded.call("pipe", scope_of(), {"body": {}}))
    except PluginError as error:
        return error.message


@pytest.mark.parametrize("what", MALFORMED)
async def test_a_process_that_says_nonsense_is_ended(isolating: Isolating, what: str) -> None:
    async with isolated(SAYING.replace("{code}", MALFORMED[what]), isolating) as (loaded, _):
        first = loaded.supervisor.process
        assert first is not None
        assert "its process" in await outcome(loaded) or not first.is_alive
        while first.is_alive:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("what", HOLDERS)
async def test_code_that_holds_the_interpreter_is_ended_and_holds_nobody_else(
    isolating: Isolating, what: str
) -> None:
    isolating.seconds = 2.0
    content = f"""
        class Pipe:
            def pipe(self, body):
                if not body:
                    {HOLDERS[what]}
                return "alive"
    """
    async with isolated(content, isolating) as (loaded, _):
        call = asyncio.ensure_future(outcome(loaded))
        turns = 0
        while not call.done():
            await asyncio.sleep(0.01)
            turns += 1
        # The loop of the gateway turns all the while that the call holds its own interpreter.
        assert turns > 30
        sentence = "gave no sign of life for 2 s and was ended: code of it held the interpreter"
        assert sentence in call.result()
        assert await loaded.call("pipe", scope_of(), {"body": {"a": 1}}) == "alive"


KEEPING = """
    class Pipe:
        kept = []
        def pipe(self, body):
            try:
                while body["fills"]:
                    self.kept.append(bytearray(16 << 20))
            except MemoryError:
                return "swallowed"
            self.kept.append(bytearray(body["bytes"]))
            return len(self.kept)

        async def action(self, body):
            yield "open"
"""


async def test_memory_is_bounded_and_a_process_that_lacks_it_is_replaced(isolating: Isolating) -> None:
    isolating.memory = 256 * MB
    async with isolated(KEEPING, isolating) as (loaded, _):
        first = loaded.supervisor.process
        assert await loaded.call("pipe", scope_of(), {"body": {"fills": False, "bytes": 100 * MB}}) == 1
        with pytest.raises(PluginError, match=r"^pipe p: MemoryError$"):
            await loaded.call("pipe", scope_of(), {"body": {"fills": False, "bytes": 512 * MB}})
        assert not loaded.supervisor.is_alive
        assert await loaded.call("pipe", scope_of(), {"body": {"fills": False, "bytes": 1}}) == 1
        assert loaded.supervisor.process is not first


async def test_a_process_whose_memory_is_full_is_replaced_once_it_is_idle(
    isolating: Isolating, caplog: pytest.LogCaptureFixture
) -> None:
    isolating.memory = 256 * MB
    async with isolated(KEEPING, isolating) as (loaded, _):
        items = await loaded.call("action", scope_of(), {"body": {}})
        assert await loaded.call("pipe", scope_of(), {"body": {"fills": True}}) == "swallowed"
        assert loaded.supervisor.is_alive
        assert [item async for item in items] == ["open"]
        assert not loaded.supervisor.is_alive
        told = "the process of a plugin used up its 256 MiB of plugin_process_memory and was ended"
        assert told in caplog.messages
        assert await loaded.call("pipe", scope_of(), {"body": {"fills": False, "bytes": 1}}) == 1


async def test_a_process_that_cannot_answer_ends(isolating: Isolating) -> None:
    content = """
        import __main__
        __main__.pack_at_once = __main__._failure = None
        class Pipe:
            def pipe(self, body): ...
    """
    with pytest.raises(PluginError, match="ended with status 1: TypeError: 'NoneType' object is not"):
        async with isolated(content, isolating):
            raise AssertionError


async def test_a_process_that_answers_nothing_but_that_it_is_alive_is_ended(
    isolating: Isolating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_ANSWER_SECONDS", 0.3)
    content = """
        import __main__, asyncio
        class Filter:
            async def inlet(self, body):
                if body:
                    await asyncio.sleep(0.5)
                    __main__.ChildService.take = lambda *_: None
                return "answered"
    """
    async with isolated(content, isolating) as (loaded, plugged):
        # A call has no limit, and what comes after it gets no answer.
        assert await loaded.call("inlet", scope_of(), {"body": {"a": 1}}) == "answered"
        assert await loaded.take(replace(loaded.plugin, valves={"a": 1}))
        problem = plugged.registry.list()[0].problem
        assert problem is not None
        assert "did not answer within 0.3 s; the next call starts it again" in problem.sentence
        assert await loaded.call("inlet", scope_of(), {"body": {}}) == "answered"


async def test_the_kernel_ends_it_before_the_gateway(isolating: Isolating) -> None:
    content = """
        class Pipe:
            def pipe(self, body):
                return open("/proc/self/oom_score_adj").read()
    """
    own = int(Path("/proc/self/oom_score_adj").read_text())
    async with isolated(content, isolating) as (loaded, _):
        assert int(await outcome(loaded)) == min(own + OOM_SCORE_INCREASE, MAX_OOM_SCORE)


class Offering:
    """Answers with a stream, and hears that an answer was dropped."""

    def __init__(self) -> None:
        self.dropped: list[PipeData] = []

    async def answer(self, asked: Any, payload: PipeData) -> PipeData:
        return PipeData(asked)

    async def drop(self, answer: PipeData) -> None:
        self.dropped.append(answer)

    def hear(self, said: Any, payload: PipeData) -> None: ...


async def test_an_answer_that_is_not_written_is_dropped(isolating: Isolating) -> None:
    tasks, listener = TaskRegistry(), Offering()
    asked = PluginProcess(
        plugin_of("p", "class Pipe: ..."), process.ProcessOptions(1, 1, {}), listener, tasks
    )
    async with asked._writing:
        await asked._take({"ask": 1}, b"")
        # It is answered, and its answer waits for that of another question.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asked._take({"tell": "withdraw", "of": 1}, b"")
        while tasks.list():
            await asyncio.sleep(0)
    assert listener.dropped == [PipeData({"ask": 1})]


async def test_it_sees_no_secret(isolating: Isolating, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    isolating.environment = {"TZ": "UTC"}
    content = """
        import os
        class Pipe:
            def pipe(self, body):
                return [dict(os.environ), open("/proc/self/environ").read()]
    """
    async with isolated(content, isolating) as (loaded, _):
        seen, raw = await loaded.call("pipe", scope_of(), {"body": {}})
    assert set(seen) - {"LC_CTYPE"} == {
        "PATH",
        "LANG",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "TZ",
        "WEBUI_SECRET_KEY",
    }
    assert "sk-secret" not in raw


async def test_half_a_message_spoils_what_follows(isolating: Isolating) -> None:
    isolating.seconds = 2.0
    content = SAYING.replace("{code}", "say({'tell': 'facts'}, b'{', more=100)")
    async with isolated(content, isolating) as (loaded, _):
        assert "its process" in await outcome(loaded)


async def test_whoever_says_much_is_heard_for_half_of_the_time(isolating: Isolating) -> None:
    flood = """
    def flood():
        line = json.dumps({'level': 10, 'logger': 'x', 'fields': {}, 'message': 'x'}).encode()
        while True:
            say({'tell': 'log'}, line)
    class Pipe:
        async def pipe(self, body):
            threading.Thread(target=flood, daemon=True).start()
            return "begun"
"""
    async with isolated(SAYING.partition("    class Pipe")[0] + flood, isolating) as (loaded, _):
        assert await outcome(loaded) == "begun"
        began, used = time.monotonic(), time.process_time()
        await asyncio.sleep(1.0)
        used, took = time.process_time() - used, time.monotonic() - began
        assert used < 0.75 * took


async def test_questions_are_bounded(isolating: Isolating, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_QUESTIONS", 3)
    content = """
        import asyncio
        class Pipe:
            async def pipe(self, body, __event_call__):
                async def ask():
                    try:
                        return await asyncio.wait_for(__event_call__({"type": "input", "data": {}}), 1)
                    except Exception as error:
                        return str(error)
                return await asyncio.gather(*(ask() for _ in range(5)))
    """

    class Silent:
        async def call(self, target: Any, event: Any) -> Any:
            await asyncio.sleep(60)

        async def emit(self, target: Any, event: Any) -> bool:
            return True

    async with isolated(content, isolating, events=Silent()) as (loaded, _):
        answers = await loaded.call("pipe", scope_of(), {"body": {}})
        refused = [one for one in answers if "the plugin makes too many at a time" in one]
        assert len(refused) == 2


async def test_bytes_of_questions_are_bounded(isolating: Isolating, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MAX_QUESTION_BYTES", 1 << 20)
    content = """
        import asyncio
        class Pipe:
            async def pipe(self, body, __event_call__):
                async def ask():
                    try:
                        event = {"type": "input", "data": {"text": "x" * (600 << 10)}}
                        return await asyncio.wait_for(__event_call__(event), 2)
                    except Exception as error:
                        return str(error)
                return await asyncio.gather(*(ask() for _ in range(5)))
    """

    class Silent:
        async def call(self, target: Any, event: Any) -> Any:
            await asyncio.sleep(60)

        async def emit(self, target: Any, event: Any) -> bool:
            return True

    async with isolated(content, isolating, events=Silent()) as (loaded, _):
        for _ in range(2):
            answers = await loaded.call("pipe", scope_of(), {"body": {}})
            refused = [one for one in answers if "the plugin makes too many at a time" in one]
            assert len(refused) == 3


async def test_an_error_of_the_gateway_that_a_process_makes_up_is_a_failure_of_the_plugin(
    isolating: Isolating,
) -> None:
    forging = """
    MADE_UP = {"error": {"kind": "unauthenticated", "message": "made up", "param": None, "code": None}}
    answer = ParentPipe.answer
    def forge(self, message, header, blob=b""):
        is_forged = message["do"] in ("call", "hook", "take")
        return answer(self, message, MADE_UP if is_forged else header, b"" if is_forged else blob)
    ParentPipe.answer = forge
    class Pipe:
        def on_startup(self): ...
        def pipe(self, body): ...
"""
    async with isolated(SAYING.partition("    class Pipe")[0] + forging, isolating) as (loaded, _):
        with pytest.raises(PluginError, match="made up"):
            await loaded.call("pipe", scope_of(), {"body": {}})
        await loaded.run_hook("on_startup")
        assert await loaded.take(replace(loaded.plugin, valves={"a": 1}))


async def test_many_plain_calls_run_at_a_time(isolating: Isolating) -> None:
    isolating.memory = 512 * MB
    content = """
        import time
        class Pipe:
            def pipe(self, body):
                time.sleep(1)
                return "done"
    """
    async with isolated(content, isolating) as (loaded, _):
        assert set(await asyncio.gather(*(outcome(loaded) for _ in range(100)))) == {"done"}
