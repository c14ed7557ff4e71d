"""Sources of plugins are looked at in a process of their own, so that what they do stays there."""

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
# Nothing comes from the folder that the daemon happens to be in, and the daemon from where it is now.
PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv[1]); from gatewayd.plugins.source.check import main; main()"
)
START_SECONDS: Final = 20.0
"""Seconds for the process to start and to tell, beyond the time that a source has to load."""

_REPORT: Final = TypeAdapter(SourceCheckReport)

SettingsReader = Callable[[], Awaitable[Mapping[str, Any]]]


class SourceChecker:
    """Checks sources one process each, with the packages that were installed for plugins.

    `settings` gives what plugins see as settings; `timeout` in seconds is what a source has to load.
    """

    def __init__(
        self, installation: InstallationOptions, timeout: float, settings: SettingsReader | None = None
    ) -> None:
        self._installation = installation
        self._timeout = timeout
        self._settings = settings

    async def check(
        self, plugin_id: str, content: str, family: PluginFamily | None = None
    ) -> SourceCheckReport:
        """Return what can be told of a source, one that does not load included."""
        installs = self._installation.is_enabled
        pip_timeout = self._installation.timeout if installs else 0.0
        question = SourceCheckRequest(
            id=plugin_id,
            content=content,
            family=None if family is None else family.value,
            timeout=self._timeout,
            packages=str(self._installation.directory) if installs else None,
            pip_options=self._installation.options,
            pip_timeout=pip_timeout,
            settings={} if self._settings is None else dict(await self._settings()),
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
                told, _ = await child.communicate(orjson.dumps(question, default=str))
        except TimeoutError:
            return _failed(question, f"it did not load within {self._timeout:g} s")
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        return _read(question, told, child.returncode or 0)


def _read(question: SourceCheckRequest, told: bytes, status: int) -> SourceCheckReport:
    try:
        return _REPORT.validate_json(told)
    except ValidationError:
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return _failed(question, f"it ended the process that loaded it {how}")


def _failed(question: SourceCheckRequest, why: str) -> SourceCheckReport:
    blank = SourceCheckReport(id=question.id, family=question.family, name=question.id)
    return replace(blank, error=f"{question.family or 'plugin'} {question.id}: {why}")
