import asyncio
import io
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gatewayd.completions.records import CompletionChunk
from gatewayd.observe.logs import LogFormat, configure_logging
from gatewayd.plugins.runtime.invoke import PluginError
from tests.fakes.plugins.host_services import Wishes, hosting
from tests.fakes.plugins.isolated import Isolating, isolated
from tests.fakes.plugins.memory import scope_of


async def test_import_names_reach_the_gateway(isolating: Isolating, tmp_path: Path) -> None:
    content = """
        from open_webui.models.users import Users
        from open_webui.utils.chat import generate_chat_completion
        from open_webui.env import WEBUI_SECRET_KEY
        class Pipe:
            async def pipe(self, body, __request__, __user__):
                form = {"model": "small", "messages": [{"role": "user", "content": "hi"}]}
                user = Users.get_user_by_id(__user__["id"])
                answer = await generate_chat_completion(__request__, form, user)
                form["stream"] = True
                response = await generate_chat_completion(__request__, form, user)
                frames = [frame async for frame in response.body_iterator]
                said = answer["choices"][0]["message"]["content"]
                return [user.name, said, len(frames), WEBUI_SECRET_KEY]

            def plain(self, body):
                return Users.get_user_by_id(body["id"]).email
    """
    async with hosting(tmp_path, Wishes()) as house:
        isolating.host = house.host
        house.source.script = lambda _: [
            CompletionChunk(events=[{"choices": [{"index": 0, "delta": {"content": "a"}}]}])
        ]
        scope = scope_of(await house.actors.reader(house.ann.id))
        async with isolated(content, isolating) as (loaded, _):
            told: Any = await loaded.call("pipe", scope, {"body": {}})
            assert told[0] == house.ann.name
            assert told[1]
            assert told[2] > 1
            assert told[3] == house.host.secret_key
            email = await loaded.call("plain", scope, {"body": {"id": house.admin.id}})
            assert email == house.admin.email


async def test_a_call_that_blocks_is_left_behind_and_told(isolating: Isolating) -> None:
    content = """
        import time
        class Pipe:
            def pipe(self, body):
                if body:
                    time.sleep(1.5)
                return "done"
    """
    async with isolated(content, isolating) as (loaded, _):
        call = asyncio.ensure_future(loaded.call("pipe", scope_of(), {"body": {"a": 1}}))
        await asyncio.sleep(0.3)
        call.cancel()
        await asyncio.wait([call])
        assert await loaded.call("pipe", scope_of(), {"body": {}}) == "done"
        assert loaded.left_behind == 1
        while loaded.left_behind:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("named", [(), ("library",)])
async def test_the_debug_of_libraries_stays_in_the_process(
    isolating: Isolating, named: Sequence[str]
) -> None:
    content = """
        import logging
        class Broken:
            def __str__(self):
                raise RuntimeError("it has no text")
        class Pipe:
            def pipe(self, body):
                library = logging.getLogger("library.sql")
                library.setLevel(1)
                library.debug("executing %s", "$argon2id$")
                library.log(5, "fetching %s", "$argon2id$")
                library.info("connected")
                library.info(Broken())
                logging.getLogger("gatewayd.plugins.sample").debug("detail")
                logging.getLogger("a\\nforged").critical("line")
                logging.getLogger("gatewayd.audit").info("user removed")
    """
    stream, isolating.debug_loggers = io.StringIO(), named
    handler = configure_logging("debug", LogFormat.JSON, stream, {}, named)
    try:
        async with isolated(content, isolating) as (loaded, _):
            await loaded.call("pipe", scope_of(), {"body": {}})
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(logging.WARNING)
        logging.getLogger("gatewayd").setLevel(logging.NOTSET)
    records = [record for record in map(json.loads, stream.getvalue().splitlines()) if "plugin" in record]
    told = [f"{one['logger']} {one['level']} {one['message']}" for one in records if "text" not in one]
    details = (
        ["library.sql debug executing $argon2id$", "library.sql debug fetching $argon2id$"] if named else []
    )
    own = [
        "gatewayd.plugins.sample debug detail",
        "a_forged error line",
        "gatewayd.plugins.isolation.supervisor info user removed",
    ]
    assert told == [*details, "library.sql info connected", *own]
    assert "RuntimeError: it has no text" in [one["text"] for one in records if "text" in one]


async def test_what_cannot_leave_the_process_is_a_failure_of_the_call(isolating: Isolating) -> None:
    content = """
        class Pipe:
            def pipe(self, body):
                return {"large": "x" * (20 << 20)} if body else {"odd": object()}
    """
    async with isolated(content, isolating) as (loaded, _):
        with pytest.raises(PluginError, match="TypeError: Type is not JSON serializable: object"):
            await loaded.call("pipe", scope_of(), {"body": {}})
        with pytest.raises(PluginError, match="more than the 16777216 that its process may send"):
            await loaded.call("pipe", scope_of(), {"body": {"large": 1}})
        assert loaded.supervisor.is_alive


async def test_the_tools_of_a_request_are_called_from_the_loop_of_the_plugin(isolating: Isolating) -> None:
    content = """
        class Pipe:
            async def pipe(self, body, __tools__):
                tool = __tools__["add"]
                return [tool["spec"], await tool["callable"](a=1, b=2)]
    """

    async def add(a: int, b: int) -> int:
        return a + b

    tools = {"add": {"callable": add, "spec": {"name": "add"}}}
    async with isolated(content, isolating) as (loaded, _):
        told = await loaded.call("pipe", scope_of(tools=tools), {"body": {}})
        assert told == [{"name": "add"}, 3]
