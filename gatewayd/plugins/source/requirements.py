"""Packages that plugins require: installed beside the gateway when that is allowed, else named."""

import asyncio
import hashlib
import importlib
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gatewayd.plugins.open_webui.manifest import PACKAGE
from gatewayd.plugins.records import Plugin, log_fields
from gatewayd.plugins.runtime.invoke import FailureDetails, PluginError
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.packages import (
    DISTRIBUTIONS,
    choose_requirements,
    find_unmet,
    missing_module,
    missing_part,
)

log = logging.getLogger(__name__)

SETTING: Final = "enable_pip_install_frontmatter_requirements"
_MARKS: Final = ".installed"
_TOLD: Final = 600


@dataclass(frozen=True, slots=True)
class InstallationOptions:
    """How packages are installed into `directory`.

    `options` go to pip as they are, `timeout` is in seconds.
    """

    directory: Path
    is_enabled: bool = False
    options: tuple[str, ...] = ()
    timeout: float = 600.0


class RequirementsInstaller:
    """Installs each set of required packages once, one set after the other, in a child process.

    With `not_installed` somebody else has done so, and this is what `ensure` returned there: packages are
    found, and none is installed.
    """

    def __init__(self, installation: InstallationOptions, *, not_installed: str | None = None) -> None:
        self._installation = installation
        self._not_installed = not_installed
        self._lock = asyncio.Lock()
        self._done: set[str] = set()

    def open(self) -> None:
        """Make packages that were installed before importable; those of the gateway itself come first."""
        directory = str(self._installation.directory)
        if self._installation.is_enabled and directory not in sys.path:
            sys.path.append(directory)

    def close(self) -> None:
        """Take the directory away from the import path again."""
        directory = str(self._installation.directory)
        if directory in sys.path:
            sys.path.remove(directory)

    async def ensure(self, plugin: Plugin) -> str:
        """Install what the header of a plugin requires and is not there, when that is allowed.

        Returns why that failed, with the last words of pip, and else an empty text: the plugin may do
        without, or with another version that is there. Raises PluginError for what is no package.
        """
        if self._not_installed is not None:
            return self._not_installed
        packages = _packages(plugin)
        if not (self._installation.is_enabled and packages):
            return ""
        for package in packages:
            if package.startswith("-"):
                raise _failure(plugin, f"it requires {package!r}, which is no package")
        mark = hashlib.sha256("\n".join([sys.version, *sorted(packages)]).encode()).hexdigest()
        async with self._lock:
            if mark in self._done:
                return ""
            failure = ""
            try:
                if not await asyncio.to_thread(self._mark(mark).exists):
                    failure = await self._install_missing(plugin, packages, mark)
            except OSError as error:
                failure = f"its packages cannot be installed: {error}"
            if failure:
                told = log_fields(plugin.family, plugin.id)
                log.warning("packages are not installed", extra={**told, "error": failure})
                return failure
            self._done.add(mark)
            importlib.invalidate_caches()
        return ""

    def hint(self, plugin: Plugin, error: ImportError) -> str:
        """Return what to do about an import that failed; empty when no package is missing.

        Looks at what is installed, on the disk.
        """
        module = missing_module(error)
        unmet = find_unmet(_packages(plugin))
        if not (module or unmet) or module.partition(".")[0] == PACKAGE:
            return ""
        top, is_enabled = module.partition(".")[0], self._installation.is_enabled
        if unmet:
            required = choose_requirements(module, unmet) or unmet
            named = f"the plugin requires {', '.join(required)}: install it"
            or_else = f"set {SETTING}" if not is_enabled else "add it to the requirements"
        elif top != module and not missing_part(module):
            return f"{top} is there in a version without it: install one that has it"
        else:
            named = f"its header names no package for it: install {DISTRIBUTIONS.get(module, module)}"
            or_else = "add it to the requirements" + ("" if is_enabled else f" and set {SETTING}")
        return f"{named} for the gateway's Python, or {or_else}"

    def _mark(self, mark: str) -> Path:
        return self._installation.directory / _MARKS / mark

    async def _install_missing(self, plugin: Plugin, packages: Sequence[str], mark: str) -> str:
        """Install those of some packages that are not there, and leave a mark of all; return why not."""
        unmet = await asyncio.to_thread(find_unmet, packages)
        if not unmet:
            return ""
        marks = self._installation.directory / _MARKS
        await asyncio.to_thread(lambda: marks.mkdir(parents=True, exist_ok=True))
        failure = await self._install(plugin, unmet)
        if not failure:
            await asyncio.to_thread(self._mark(mark).touch)
        return failure

    async def _install(self, plugin: Plugin, packages: Sequence[str]) -> str:
        """Run pip; return why it failed, an empty text when it did not."""
        directory = self._installation.directory
        told = {**log_fields(plugin.family, plugin.id), "packages": list(packages)}
        log.info("installing packages", extra=told)
        command = ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--upgrade"]
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            "--target",
            str(directory),
            *self._installation.options,
            *packages,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            async with asyncio.timeout(self._installation.timeout):
                said, _ = await child.communicate()
        except TimeoutError:
            return f"its packages were not installed within {self._installation.timeout:g} s"
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if not child.returncode:
            return ""
        last = said.decode("utf-8", "replace").strip()[-_TOLD:]
        return f"its packages cannot be installed ({', '.join(packages)}): {last}"


def _packages(plugin: Plugin) -> tuple[str, ...]:
    return frontmatter.read_requirements(frontmatter.parse_frontmatter(plugin.content))


def _failure(plugin: Plugin, text: str) -> PluginError:
    return PluginError(plugin.kind.value, plugin.id, FailureDetails(text))
