import asyncio
import logging
from typing import Any

import pytest

from gatewayd.plugins.interfaces import PluginHost
from gatewayd.plugins.open_webui.finder import InstalledModules
from gatewayd.plugins.open_webui.host_bridge import HostBridge
from gatewayd.plugins.open_webui.modules.settings import ConfigView, level_name
from gatewayd.plugins.open_webui.placeholders import NotProvidedError
from tests.fakes.plugins.plugin_threads import at_home, in_thread, load_at_home


async def test_env(installed: InstalledModules, host: PluginHost) -> None:
    module, noted = await load_at_home(
        """
import logging
from open_webui.env import SRC_LOG_LEVELS, VERSION, AIOHTTP_CLIENT_TIMEOUT, GLOBAL_LOG_LEVEL, DATA_DIR
from open_webui.env import WEBUI_SECRET_KEY, TASK_MODEL
logger = logging.getLogger("a plugin")
logger.setLevel(SRC_LOG_LEVELS["MAIN"])
logger.setLevel(SRC_LOG_LEVELS["A PART OF ITS OWN"])
logger.setLevel(SRC_LOG_LEVELS.get("RAG", logging.INFO))
newer = tuple(map(int, VERSION.split("."))) >= (0, 9, 0)
"""
    )
    assert noted.missing == []
    assert module.newer
    assert module.AIOHTTP_CLIENT_TIMEOUT == 300
    assert level_name() == module.GLOBAL_LOG_LEVEL
    assert host.data_dir == module.DATA_DIR
    assert module.DATA_DIR.is_dir()
    assert module.TASK_MODEL == "small"
    assert host.secret_key == module.WEBUI_SECRET_KEY


async def test_config(installed: InstalledModules, host: PluginHost) -> None:
    module, noted = await load_at_home(
        "from open_webui.config import UPLOAD_DIR, CACHE_DIR, RAG_TOP_K, WEBUI_URL\n"
        "try:\n    from open_webui.config import WITHOUT_A_SETTING\n"
        "except ImportError:\n    WITHOUT_A_SETTING = 0\n"
    )
    assert noted.missing == []
    assert module.UPLOAD_DIR.is_dir()
    assert host.data_dir / "cache" == module.CACHE_DIR
    assert module.RAG_TOP_K.value == 4
    assert str(module.WEBUI_URL) == "https://gateway.example.org"
    assert module.WITHOUT_A_SETTING == 0
    with pytest.raises(NotProvidedError, match="changing the setting RAG_TOP_K is not provided"):
        module.RAG_TOP_K.value = 5
    with pytest.raises(NotProvidedError):
        module.RAG_TOP_K.save()


async def test_the_table_of_settings(installed: InstalledModules) -> None:
    config = (await load_at_home("from open_webui.models.config import Config"))[0].Config

    async def plugin() -> tuple[Any, Any]:
        return await config.get_many("rag.top_k", "no.such"), await config.get_all()

    assert await in_thread(config.get, "rag.top_k") == 4
    assert await in_thread(config.get, "no.such", "default") == "default"
    many, everything = await at_home(plugin)
    assert many == {"rag.top_k": 4}
    assert everything["TASK_MODEL"] == "small"


async def test_a_view_of_settings(host: PluginHost) -> None:
    view = ConfigView(HostBridge(host, asyncio.get_running_loop()))
    assert await in_thread(lambda: view.RAG_TOP_K) == 4
    assert await in_thread(lambda: getattr(view, "NO_SUCH", None)) is None
    with pytest.raises(AttributeError, match="lower is not provided"):
        _ = view.lower
    with pytest.raises(NotProvidedError, match="changing the setting RAG_TOP_K"):
        view.RAG_TOP_K = 5


def test_the_level_is_that_of_the_gateway() -> None:
    before = logging.getLogger("gatewayd").level
    try:
        logging.getLogger("gatewayd").setLevel(logging.ERROR)
        assert level_name() == "ERROR"
    finally:
        logging.getLogger("gatewayd").setLevel(before)
