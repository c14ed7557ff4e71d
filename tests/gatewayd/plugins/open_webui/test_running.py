"""Plugins as people write them, loaded and called for real, over the names."""

from pathlib import Path
from typing import Any

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.context import RequestFacts
from tests.fakes.plugins.memory import actor_of, make_registry, plugin_of, scope_of

PIPE = '''
"""
title: Writer
"""
import io, logging
from fastapi import Request, UploadFile
from starlette.datastructures import Headers
from open_webui.constants import TASKS
from open_webui.env import SRC_LOG_LEVELS, VERSION
from open_webui.main import generate_chat_completions
from open_webui.models.chats import Chats
from open_webui.models.auths import Auths
from open_webui.models.users import User, Users
from open_webui.routers.files import upload_file_handler
from open_webui.utils.misc import get_last_user_message, pop_system_message
from pydantic import BaseModel
try:
    from open_webui.models.tags import Tags
except ImportError:
    Tags = None

logging.getLogger(__name__).setLevel(SRC_LOG_LEVELS["MAIN"])


class Pipe:
    class Valves(BaseModel):
        model: str = "small"

    def __init__(self):
        self.valves = self.Valves()

    async def pipe(self, body: dict, __user__: dict, __request__: Request, __task__: str = None):
        if __task__ == TASKS.TITLE_GENERATION:
            return "A title"
        system, rest = pop_system_message(body["messages"])
        user = await Users.get_user_by_id(__user__["id"])
        also = Users.get_user_by_id(__user__["id"])
        nobody = await Users.get_user_by_id("nobody")
        title = await Chats.get_chat_title_by_id("c1")
        answer = await generate_chat_completions(
            __request__, {"model": self.valves.model, "messages": rest, "stream": False}, user
        )
        item = await upload_file_handler(
            __request__,
            UploadFile(io.BytesIO(b"png"), filename="a.png", headers=Headers({"content-type": "image/png"})),
            {"by": "writer"}, False, user=User(**__user__),
        )
        url = __request__.app.url_path_for("get_file_content_by_id", id=item.id)
        language = __request__.headers.get("accept-language")
        text = answer["choices"][0]["message"]["content"]
        asked = get_last_user_message(body["messages"])
        return "|".join([user.name, also.email, str(nobody), title, text, asked, url, language, str(Tags)])
'''

TOOL = '''
from open_webui.models.files import Files
from open_webui.models.auths import Auths


class Tools:
    def read(self, file_id: str) -> str:
        """Read a file."""
        return str(Files.get_file_by_id(file_id))

    def skill(self) -> str:
        """Use a skill."""
        return Auths.get_auth_by_id("x")
'''


@pytest.fixture
def arguments() -> dict[str, Any]:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "hello"}]
    return {"body": {"model": "writer", "messages": messages, "stream": False}}


async def test_a_pipe_asks_stores_and_looks_up(
    installed: InstalledModules, host: PluginHost, arguments: dict[str, Any]
) -> None:
    facts = RequestFacts(headers=(("Accept-Language", "fr"),))
    scope = scope_of(actor_of("ada"), facts=facts)
    registry = make_registry(plugin_of("writer", PIPE), make_request=installed.make_request)
    async with registry as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "writer")
        answer = await loaded.call("pipe", scope, arguments)
        assert loaded.plugin.missing == ("open_webui.models.auths.Auths",)
    assert answer.split("|") == [
        "Ada",
        "ada@example.org",
        "None",
        "Trains",
        "ada: hello",
        "hello",
        "/api/v1/files/f1/content",
        "fr",
        "None",
    ]
    assert host.completions.asked[0]["scope"] is scope  # type: ignore[attr-defined]
    assert (await host.files.find("f1") or {})["user_id"] == "ada"


async def test_a_task_is_told_by_its_name(installed: InstalledModules, arguments: dict[str, Any]) -> None:
    scope = scope_of(actor_of("ada"), task="title_generation")
    registry = make_registry(plugin_of("writer", PIPE), make_request=installed.make_request)
    async with registry as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.FUNCTION, "writer")
        assert await loaded.call("pipe", scope, arguments) == "A title"


async def test_plain_methods_of_tools_look_up_from_their_threads(
    installed: InstalledModules, tmp_path: Path
) -> None:
    async with make_registry(plugin_of("reader", TOOL)) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.TOOL, "reader")
        assert await loaded.call("read", scope_of(), {"file_id": "f9"}) == "None"
        with pytest.raises(Exception, match=r"models\.auths\.Auths\.get_auth_by_id is not provided"):
            await loaded.call("skill", scope_of(), {})
