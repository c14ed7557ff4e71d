"""Installation of the packages that plugins require, or hints when installation is off."""

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
_MAX_OUTPUT_CHARACTERS: Final = 600


@dataclass(frozen=True, slots=True)
class InstallationOptions:
    """Options of the installation into `directory`.

    `options` are passed to pip, `timeout` is in seconds.
    """

    directory: Path
    is_enabled: bool = False
    options: tuple[str, ...] = ()
    timeout: float = 600.0


class RequirementsInstaller:
    """Installs each set of required packages once, one set at a time, in a child process.

    With `not_installed` another process has run the installation and got this result of `ensure`: packages
    can be imported, and none is installed.
    """

    def __init__(self, installation: InstallationOptions, *, not_installed: str | None = None) -> None:
        self._installation = installation
        self._not_installed = not_installed
        self._lock = asyncio.Lock()
        self._done: set[str] = set()

    def open(self) -> None:
        """Append the directory to the import path, after the packages of the gateway."""
        directory = str(self._installation.directory)
        if self._installation.is_enabled and directory not in sys.path:
            sys.path.append(directory)

    def close(self) -> None:
        """Remove the directory from the import path."""
        directory = str(self._installation.directory)
        if directory in sys.path:
            sys.path.remove(directory)

    async def ensure(self, plugin: Plugin) -> str:
        """Install the missing requirements of a plugin, if installation is enabled.

        Returns the reason of a failure, with the end of the output of pip, "" on success; the plugin may run
        without the packages. Raises PluginError for a requirement that is not a package.
        """
        if self._not_installed is not None:
            return self._not_installed
        packages = _packages(plugin)
        if not (self._installation.is_enabled and packages):
            return ""
        for package in packages:
            if package.startswith("-"):
                raise _failure(plugin, f"it requires {package!r}, which is not a package")
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
                fields = log_fields(plugin.family, plugin.id)
                log.warning("cannot install packages", extra={**fields, "error": failure})
                return failure
            self._done.add(mark)
            importlib.invalidate_caches()
        return ""

    def hint(self, plugin: Plugin, error: ImportError) -> str:
        """Return advice for a failed import; empty when no package is missing.

        Reads the installed packages from disk.
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
            return f"the installed version of {top} lacks it: install one that has it"
        else:
            named = f"its header names no package for it: install {DISTRIBUTIONS.get(module, module)}"
            or_else = "add it to the requirements" + ("" if is_enabled else f" and set {SETTING}")
        return f"{named} for the gateway's Python, or {or_else}"

    def _mark(self, mark: str) -> Path:
        return self._installation.directory / _MARKS / mark

    async def _install_missing(self, plugin: Plugin, packages: Sequence[str], mark: str) -> str:
        """Install the missing ones of some packages and mark the set; return the reason of a failure."""
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
        """Run pip; return the reason of a failure, "" on success."""
        directory = self._installation.directory
        fields = {**log_fields(plugin.family, plugin.id), "packages": list(packages)}
        log.info("installing packages", extra=fields)
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
                output, _ = await child.communicate()
        except TimeoutError:
            return f"its packages were not installed within {self._installation.timeout:g} s"
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if not child.returncode:
            return ""
        last = output.decode("utf-8", "replace").strip()[-_MAX_OUTPUT_CHARACTERS:]
        return f"its packages cannot be installed ({', '.join(packages)}): {last}"


def _packages(plugin: Plugin) -> tuple[str, ...]:
    return frontmatter.read_requirements(frontmatter.parse_frontmatter(plugin.content))


def _failure(plugin: Plugin, text: str) -> PluginError:
    return PluginError(plugin.kind.value, plugin.id, FailureDetails(text))
