import base64
import logging
from typing import Any

import pytest
from starlette.responses import HTMLResponse

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


@pytest.fixture
async def process(installed: InstalledModules) -> Any:
    module, _ = await load_at_home("from open_webui.utils.middleware import process_tool_result")
    return module.process_tool_result


async def test_a_result_is_text_files_and_pages(process: Any, host: PluginHost) -> None:
    text, files, embeds = await in_thread(process, None, "add", {"sum": 3}, "function")
    assert ('"sum": 3' in text, files, embeds) == (True, [], [])
    page = HTMLResponse("<p>hi</p>", headers={"Content-Disposition": "inline"})

    async def plugin() -> Any:
        return await process(None, "show", page, "function", False, {}, user={"id": "ada"})

    text, files, embeds = await at_home(plugin)
    assert ("show" in text, files, embeds) == (True, [], ["<p>hi</p>"])
    picture = "data:image/png;base64," + base64.b64encode(b"picture").decode()
    _, files, _ = await in_thread(lambda: process(None, "draw", picture, "function", user={"id": "ada"}))
    assert files == [{"type": "image", "url": "/api/v1/files/f1/content"}]
    assert (await host.files.find("f1") or {})["user_id"] == "ada"
    with pytest.raises(TypeError, match="the user is missing"):
        await in_thread(process, None, "draw", picture, "function")


async def test_the_log(installed: InstalledModules) -> None:
    module, _ = await load_at_home("from open_webui.utils.logger import logger, start_logger, stdout_format")
    before = list(logging.getLogger().handlers)
    module.start_logger()
    assert logging.getLogger().handlers == before
    assert module.logger.name == "gatewayd.plugins.runtime.output"
    assert "{message}" in module.stdout_format({})
