"""Tests for gatewayd.assembly.plugins: plugins of a directory are served by the assembled gateway."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from gatewayd.accounts.records import Actor, CredentialKind
from gatewayd.assembly.gateway import Gateway, assemble
from gatewayd.assembly.plugins import OpenWebuiImports, PluginSwitches, package_installation, plugin_sources
from gatewayd.pipeline.records import ChatRequest
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import CallScope
from gatewayd.settings import Settings, load

PIPE = '''"""
title: Who
"""
import os

from open_webui.models.users import Users


class Pipe:
    async def pipe(self, body, __user__):
        user = Users.get_user_by_id(__user__["id"])
        return f"{user.email} {os.environ['WEBUI_SECRET_KEY'] == body['messages'][0]['content']}"
'''


def settings_for(state: Path, **values: str) -> Settings:
    given = {"DATA_DIR": str(state), "ENABLE_BUILTIN_MODEL": "false", "PLUGINS_DIR": str(state / "plugins.d")}
    return load(None, {**given, **values})


async def ask(gateway: Gateway, actor: Actor, text: str) -> Any:
    request = ChatRequest("who", {"model": "who", "messages": [{"role": "user", "content": text}]}, False)
    answer = await gateway.services.pipeline.run(request, actor)
    assert answer.completion is not None
    return answer.completion.body["choices"][0]["message"]["content"]


async def test_a_plugin_of_the_directory_reaches_the_gateway(state: Path) -> None:
    (state / "plugins.d").mkdir(parents=True)
    (state / "plugins.d" / "who.py").write_text(PIPE)
    secret = "the secret of the gateway, which no plugin sees"
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state, WEBUI_SECRET_KEY=secret), stack)
        user = (await gateway.services.accounts.setup.run("a@example.org", "A", "a password")).user
        actor = Actor(user, CredentialKind.CONTROL, (), {})
        assert await ask(gateway, actor, secret) == "a@example.org False"


async def test_exceptions_of_isolation_that_name_no_plugin_are_told(
    state: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (state / "plugins.d").mkdir(parents=True)
    (state / "plugins.d" / "who.py").write_text(PIPE)
    async with AsyncExitStack() as stack:
        await assemble(settings_for(state, PLUGIN_ISOLATION_EXCEPTIONS="who,whom", SAFE_MODE="true"), stack)
    told = [vars(one)["plugin"] for one in caplog.records if "plugin_isolation_exceptions" in one.message]
    assert told == ["whom"]


async def test_safe_mode_lists_plugins_and_runs_none(state: Path) -> None:
    (state / "plugins.d").mkdir(parents=True)
    (state / "plugins.d" / "who.py").write_text(PIPE)
    async with AsyncExitStack() as stack:
        gateway = await assemble(settings_for(state, SAFE_MODE="true"), stack)
        assert gateway.services.extensions.registry.find(PluginFamily.FUNCTION, "who") is not None
        assert not gateway.services.extensions.registry.is_running
        assert await gateway.services.catalog.list_all() == []


def test_settings_become_options(state: Path) -> None:
    settings = settings_for(
        state, ENABLE_PLUGINS="false", PIP_OPTIONS="--no-deps  -q", TASK_MODEL="small", SAFE_MODE="true"
    )
    sources = plugin_sources(settings)
    assert (sources.is_enabled, sources.is_safe, sources.directory) == (False, True, state / "plugins.d")
    assert package_installation(settings).options == ("--no-deps", "-q")
    assert package_installation(settings).directory == state / "plugin-packages"
    switches = PluginSwitches()
    switches.configure(settings)
    assert (switches.task_model, switches.runs_outlets) == ("small", False)


def test_no_plugin_is_called_before_the_names_are_there() -> None:
    nothing: Any = None
    with pytest.raises(RuntimeError, match="start"):
        OpenWebuiImports().make_request(CallScope(nothing, nothing))
