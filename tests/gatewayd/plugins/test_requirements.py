"""Packages that plugins require."""

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from gatewayd.plugins.invoke import PluginError
from gatewayd.plugins.records import Family
from gatewayd.plugins.requirements import Installation, Requirements
from tests.fakes.plugins import make_registry, plugin_of, scope_of

OFFLINE = ("--no-index",)


def wheel(folder: Path, name: str, version: str = "1.0") -> Path:
    """Write a package whose module `name` has `VALUE`; return its wheel."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", f"VALUE = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def requiring(name: str) -> str:
    return (
        f'"""\nrequirements: {name}\n"""\nimport {name}\n'
        f"class Tools:\n    def run(self): return {name}.VALUE\n"
    )


async def test_what_is_missing_names_the_setting(tmp_path: Path) -> None:
    async with make_registry(plugin_of("t", requiring("gatewayd_absent_package"))) as plugged:
        with pytest.raises(PluginError) as caught:
            await plugged.registry.loaded(Family.TOOL, "t")
    assert "No module named 'gatewayd_absent_package'" in caught.value.message
    assert "enable_pip_install_frontmatter_requirements" in caught.value.message


@pytest.mark.slow
async def test_packages_are_installed_once_when_that_is_allowed(tmp_path: Path) -> None:
    name = "gatewayd_test_package"
    wheel(tmp_path, name)
    packages = tmp_path / "packages"
    installation = Installation(packages, True, (*OFFLINE, "--find-links", str(tmp_path)))
    plugin = plugin_of("t", requiring(name))
    try:
        async with make_registry(plugin, installation=installation) as plugged:
            loaded = await plugged.registry.loaded(Family.TOOL, "t")
            assert await loaded.call("run", scope_of(), {}) == "1.0"
        assert str(packages) not in sys.path
        (tmp_path / f"{name}-1.0-py3-none-any.whl").unlink()
        sys.modules.pop(name)
        async with make_registry(plugin, installation=installation) as plugged:
            assert await plugged.registry.loaded(Family.TOOL, "t")
    finally:
        sys.modules.pop(name, None)


@pytest.mark.slow
async def test_the_last_words_of_pip_are_told(tmp_path: Path) -> None:
    installation = Installation(tmp_path / "packages", True, OFFLINE)
    async with make_registry(
        plugin_of("t", requiring("gatewayd_absent_package")), installation=installation
    ) as plugged:
        with pytest.raises(PluginError, match=r"(?s)cannot be installed: .*gatewayd_absent"):
            await plugged.registry.loaded(Family.TOOL, "t")


async def test_options_are_no_packages(tmp_path: Path) -> None:
    requirements = Requirements(Installation(tmp_path, True))
    with pytest.raises(PluginError, match="'-r x', which is no package"):
        await requirements.ensure(plugin_of("t", '"""\nrequirements: -r x\n"""\nclass Tools: pass'))


async def test_a_directory_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    requirements = Requirements(Installation(tmp_path / "file" / "packages", True))
    with pytest.raises(PluginError, match="its packages cannot be installed"):
        await requirements.ensure(plugin_of("t", requiring("x")))
