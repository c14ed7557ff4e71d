"""Implementation of `open_webui.utils.middleware` and `open_webui.utils.logger`."""

import logging
import mimetypes
from collections.abc import Mapping
from typing import Any

from gatewayd.plugins.interfaces import HostUpload
from gatewayd.plugins.open_webui.awaitable_records import AnswerTuple
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.modules.app import ROUTES
from gatewayd.plugins.open_webui.modules.users import id_of
from gatewayd.plugins.tool_results import ResultMedia, read_result


class ToolResults(HostTable):
    """Interprets the results of tools that a plugin called."""

    @blocking
    async def process_tool_result(
        self, request: Any, tool_function_name: str, tool_result: Any, *rest: Any, **named: Any
    ) -> AnswerTuple:
        """Return `(text for the model, files, embeds)`; media are stored as files of the user."""
        del request, rest
        result = read_result(tool_result, tool_function_name)
        user = named.get("user")
        files = [await self._store_media(media, user) for media in result.media]
        return AnswerTuple((result.text, files, list(result.embeds)))

    async def _store_media(self, media: ResultMedia, user: Any) -> dict[str, Any]:
        if user is None:
            raise TypeError("cannot store the file of a result: the user is missing")
        name = f"{media.type}{mimetypes.guess_extension(media.content_type) or ''}"
        upload = HostUpload(name, media.content, media.content_type)
        stored = await self._host.files.store(id_of(user), upload)
        url = ROUTES["get_file_content_by_id"].format(id=stored["id"])
        return {"type": media.type, "url": url}


def start_logger() -> None:
    """Do nothing: the gateway sets up logging before it loads plugins."""


def stdout_format(_record: Mapping[str, Any]) -> str:
    """Return the line format for loguru handlers of plugins."""
    return "{time:YYYY-MM-DD HH:mm:ss.SSS} | {level: <8} | {name}:{function}:{line} - {message}\n{exception}"


def make_middleware(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.middleware`."""
    results = ToolResults(bridge, "open_webui.utils.middleware")
    return {"process_tool_result": results.process_tool_result}


def make_logger(_bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.utils.logger`."""
    output = logging.getLogger("gatewayd.plugins.runtime.output")
    return {"logger": output, "start_logger": start_logger, "stdout_format": stdout_format}
