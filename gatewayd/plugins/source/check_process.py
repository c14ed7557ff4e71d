"""Runner of source checks, each in a process of its own."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.source.check_report import SourceCheckReport, SourceCheckRequest
from gatewayd.plugins.source.requirements import InstallationOptions

ROOT: Final = Path(__file__).parents[3]
# Import nothing from the working directory, and gatewayd from its present location.
PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from gatewayd.plugins.source.check import main; main()"
)
START_SECONDS: Final = 20.0
"""Seconds for the process to start and report, in addition to the time limit of loading."""

_REPORT: Final = TypeAdapter(SourceCheckReport)

SettingsReader = Callable[[], Awaitable[Mapping[str, Any]]]


class SourceChecker:
    """Checks sources, each in a process, with the packages that were installed for plugins.

    `settings` reads the settings that plugins see; `timeout` is the time limit of loading in seconds.
    """

    def __init__(
        self, installation: InstallationOptions, timeout: float, settings: SettingsReader | None = None
    ) -> None:
        self._installation = installation
        self._timeout = timeout
        self._settings = settings

    async def check(
        self,
        plugin_id: str,
        content: str,
        family: PluginFamily | None = None,
        values: Mapping[str, Any] | None = None,
    ) -> SourceCheckReport:
        """Return the report of a source, also of one that does not load; `values` are valves to check."""
        installs = self._installation.is_enabled
        pip_timeout = self._installation.timeout if installs else 0.0
        request = SourceCheckRequest(
            id=plugin_id,
            content=content,
            family=None if family is None else family.value,
            timeout=self._timeout,
            packages=str(self._installation.directory) if installs else None,
            pip_options=self._installation.options,
            pip_timeout=pip_timeout,
            settings={} if self._settings is None else dict(await self._settings()),
            values=None if values is None else dict(values),
        )
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            PROGRAM,
            str(ROOT),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(self._timeout + pip_timeout + START_SECONDS):
                output, _ = await child.communicate(orjson.dumps(request, default=str))
        except TimeoutError:
            return _failed(request, f"it did not load within {self._timeout:g} s")
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        return _read(request, output, child.returncode or 0)


def _read(request: SourceCheckRequest, output: bytes, status: int) -> SourceCheckReport:
    try:
        return _REPORT.validate_json(output)
    except ValidationError:
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return _failed(request, f"it ended the process that loaded it {how}")


def _failed(request: SourceCheckRequest, why: str) -> SourceCheckReport:
    blank = SourceCheckReport(id=request.id, family=request.family, name=request.id)
    return replace(blank, error=f"{request.family or 'plugin'} {request.id}: {why}")
