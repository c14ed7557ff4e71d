import inspect
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import StreamingResponse

from gatewayd.errors import GatewayError
from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.modules.completions import scope_of
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.call_context import CallInfo, plugin_context
from gatewayd.plugins.runtime.context import RequestFacts
from gatewayd.plugins.runtime.requests import make_request
from tests.fakes.plugins.host import make_scope
from tests.fakes.plugins.plugin_threads import at_home, load_at_home

BODY = {"model": "small", "messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
async def module(installed: InstalledModules) -> Any:
    return (
        await load_at_home(
            "from open_webui.utils.chat import generate_chat_completion\n"
            "from open_webui.main import generate_chat_completions, chat_completion, app\n"
            "from open_webui.models.users import UserModel\n"
        )
    )[0]


async def test_a_completion_is_a_mapping(module: Any, host: PluginHost) -> None:
    user = module.UserModel(id="ada")

    async def plugin() -> Any:
        return await module.generate_chat_completion(None, BODY, user=user, bypass_filter=True)

    assert inspect.iscoroutinefunction(module.generate_chat_completion)
    answer = await at_home(plugin)
    assert type(answer) is dict
    assert answer["choices"][0]["message"]["content"] == "ada: hello"
    asked = host.completions.asked[0]  # type: ignore[attr-defined]
    assert (asked["user"], asked["whole"], asked["scope"]) == ("ada", False, None)
    assert asked["body"] is not BODY


async def test_the_old_name_and_the_whole_pipeline(module: Any, host: PluginHost) -> None:
    async def plugin() -> None:
        await module.generate_chat_completions(None, BODY, {"id": "bob"})
        await module.chat_completion(None, BODY, user={"id": "bob"})

    await at_home(plugin)
    assert [asked["whole"] for asked in host.completions.asked] == [False, True]  # type: ignore[attr-defined]
    assert {asked["user"] for asked in host.completions.asked} == {"bob"}  # type: ignore[attr-defined]


async def test_a_stream_is_a_response_with_an_iterator(module: Any) -> None:
    async def plugin() -> tuple[Any, list[bytes]]:
        response = await module.generate_chat_completion(None, {**BODY, "stream": True}, {"id": "ada"})
        return response, [chunk async for chunk in response.body_iterator]

    response, chunks = await at_home(plugin)
    assert isinstance(response, StreamingResponse)
    assert chunks == [b"data: a\n\n", b"data: b\n\n", b"data: c\n\n"]


async def test_the_call_behind_the_request_is_known(
    installed: InstalledModules, module: Any, host: PluginHost
) -> None:
    scope = make_scope("ada")
    request = make_request(RequestFacts(), installed.app, scope)
    assert scope_of(request) is scope

    async def plugin() -> Any:
        return await module.generate_chat_completion(request, BODY)

    answer = await at_home(plugin)
    assert answer["choices"][0]["message"]["content"] == "ada: hello"
    assert host.completions.asked[0]["scope"] is scope  # type: ignore[attr-defined]


async def test_failures(module: Any) -> None:
    async def unknown() -> None:
        await module.generate_chat_completion(None, {**BODY, "model": "missing"}, {"id": "ada"})

    async def nobody() -> None:
        await module.generate_chat_completion(None, BODY)

    with pytest.raises(GatewayError, match="cannot find model 'missing'"):
        await at_home(unknown)
    with pytest.raises(TypeError, match="the user is missing"):
        await at_home(nobody)


def test_a_request_of_a_plugins_own_stands_for_the_call_that_runs() -> None:
    assert scope_of(None) is None
    assert scope_of(object()) is None
    scope = make_scope("ada")
    serving = plugin_context(CallInfo(PluginFamily.FUNCTION, "p", scope))
    assert serving.run(scope_of, Request({"type": "http"})) is scope
    assert serving.run(scope_of, None) is scope
