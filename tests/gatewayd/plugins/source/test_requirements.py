"""Packages that plugins require."""

import sys
from pathlib import Path

import pytest

from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.runtime.invoke import PluginError
from gatewayd.plugins.source.requirements import InstallationOptions, RequirementsInstaller
from tests.fakes.plugins.memory import make_registry, plugin_of, scope_of
from tests.fakes.plugins.wheels import requiring, wheel

OFFLINE = ("--no-index",)


async def test_what_is_missing_names_the_setting(tmp_path: Path) -> None:
    async with make_registry(plugin_of("t", requiring("gatewayd_absent_package"))) as plugged:
        with pytest.raises(PluginError) as caught:
            await plugged.registry.loaded(PluginFamily.TOOL, "t")
    assert "No module named 'gatewayd_absent_package'" in caught.value.message
    assert "enable_pip_install_frontmatter_requirements" in caught.value.message


@pytest.mark.parametrize(
    ("header", "statement", "told"),
    [
        ("google-genai, other-absent", "from google_of_test import genai", "google-genai, other-absent"),
        ("gw-google-genai, Pillow", "from google_of_test import genai", "gw-google-genai"),
        ("gw-x", "import gw_x.y", "gw-x"),
    ],
)
async def test_what_is_missing_names_its_requirement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, statement: str, told: str
) -> None:
    # A namespace that another package has a part of: the error is no ModuleNotFoundError.
    (tmp_path / "google_of_test" / "other").mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    content = f'"""\nrequirements: {header}\n"""\n{statement}\nclass Tools: pass\n'
    async with make_registry(plugin_of("t", content)) as plugged:
        with pytest.raises(PluginError) as caught:
            await plugged.registry.loaded(PluginFamily.TOOL, "t")
    assert (
        f"; the plugin requires {told}: install it for the gateway's Python, or set" in caught.value.message
    )


async def test_what_no_header_names_is_named_by_its_package(tmp_path: Path) -> None:
    requirements = RequirementsInstaller(InstallationOptions(tmp_path, True))
    plugin = plugin_of("t", "class Tools: pass")
    missing = ModuleNotFoundError("No module named 'cv2'", name="cv2")
    assert requirements.hint(plugin, missing) == (
        "its header names no package for it: install opencv-python for the gateway's Python,"
        " or add it to the requirements"
    )
    told = RequirementsInstaller(InstallationOptions(tmp_path)).hint(plugin, missing)
    assert told.endswith("or add it to the requirements and set enable_pip_install_frontmatter_requirements")
    older = ModuleNotFoundError("", name="pydantic.of_old")
    assert requirements.hint(plugin, older).startswith("the installed version of pydantic lacks it: install")
    assert requirements.hint(plugin, ImportError("cannot import name 'x' from 'json' (json.py)")) == ""
    assert requirements.hint(plugin, ModuleNotFoundError("", name="open_webui.x")) == ""


async def test_a_process_of_a_plugin_installs_nothing(tmp_path: Path) -> None:
    requirements = RequirementsInstaller(InstallationOptions(tmp_path / "packages", True), not_installed="")
    plugin = plugin_of("t", requiring("gatewayd_absent_package"))
    assert await requirements.ensure(plugin) == ""
    missing = ModuleNotFoundError("", name="gatewayd_absent_package")
    assert "requires gatewayd_absent_package: install it" in requirements.hint(plugin, missing)
    told = RequirementsInstaller(InstallationOptions(tmp_path), not_installed="pip says why")
    assert await told.ensure(plugin) == "pip says why"
    requirements.open()
    assert sys.path[-1] == str(tmp_path / "packages")
    requirements.close()


async def test_packages_that_are_there_are_not_installed(tmp_path: Path) -> None:
    # pip would fail: there is no index, and no directory to install to can be made.
    (tmp_path / "file").write_text("")
    installation = InstallationOptions(tmp_path / "file" / "packages", True, OFFLINE)
    content = '"""\nrequirements: pydantic>=2, PyYAML, orjson\n"""\nclass Tools: pass\n'
    async with make_registry(plugin_of("t", content), installation=installation) as plugged:
        assert await plugged.registry.loaded(PluginFamily.TOOL, "t")


@pytest.mark.slow
async def test_only_what_is_missing_is_installed(tmp_path: Path) -> None:
    name = "gatewayd_test_other"
    wheel(tmp_path, name)
    installation = InstallationOptions(tmp_path / "packages", True, (*OFFLINE, "--find-links", str(tmp_path)))
    content = requiring(name).replace(f"requirements: {name}", f"requirements: pydantic>=2, {name}")
    try:
        async with make_registry(plugin_of("t", content), installation=installation) as plugged:
            loaded = await plugged.registry.loaded(PluginFamily.TOOL, "t")
            assert await loaded.call("run", scope_of(), {}) == "1.0"
    finally:
        sys.modules.pop(name, None)


@pytest.mark.slow
async def test_packages_are_installed_once_when_that_is_allowed(tmp_path: Path) -> None:
    name = "gatewayd_test_package"
    wheel(tmp_path, name)
    packages = tmp_path / "packages"
    installation = InstallationOptions(packages, True, (*OFFLINE, "--find-links", str(tmp_path)))
    plugin = plugin_of("t", requiring(name))
    try:
        async with make_registry(plugin, installation=installation) as plugged:
            loaded = await plugged.registry.loaded(PluginFamily.TOOL, "t")
            assert await loaded.call("run", scope_of(), {}) == "1.0"
        assert str(packages) not in sys.path
        (tmp_path / f"{name}-1.0-py3-none-any.whl").unlink()
        sys.modules.pop(name)
        async with make_registry(plugin, installation=installation) as plugged:
            assert await plugged.registry.loaded(PluginFamily.TOOL, "t")
    finally:
        sys.modules.pop(name, None)


@pytest.mark.slow
async def test_the_last_words_of_pip_are_told(tmp_path: Path) -> None:
    installation = InstallationOptions(tmp_path / "packages", True, OFFLINE)
    async with make_registry(
        plugin_of("t", requiring("gatewayd_absent_package")), installation=installation
    ) as plugged:
        with pytest.raises(
            PluginError, match=r"(?s)cannot be installed \(gatewayd_absent_package\): .*gatewayd_absent"
        ):
            await plugged.registry.loaded(PluginFamily.TOOL, "t")


async def test_options_are_no_packages(tmp_path: Path) -> None:
    requirements = RequirementsInstaller(InstallationOptions(tmp_path, True))
    with pytest.raises(PluginError, match="'-r x', which is not a package"):
        await requirements.ensure(plugin_of("t", '"""\nrequirements: -r x\n"""\nclass Tools: pass'))


async def test_a_directory_that_cannot_be_made_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    requirements = RequirementsInstaller(InstallationOptions(tmp_path / "file" / "packages", True))
    failure = await requirements.ensure(plugin_of("t", requiring("gatewayd_absent_package")))
    assert failure.startswith("its packages cannot be installed: ")


@pytest.mark.slow
async def test_a_plugin_that_does_without_loads_offline(tmp_path: Path) -> None:
    installation = InstallationOptions(tmp_path / "packages", True, OFFLINE)
    content = """
        \"\"\"
        requirements: pydantic==0.0.1, gatewayd-absent-package
        \"\"\"
        import pydantic
        try:
            import gatewayd_absent_package
        except ImportError:
            gatewayd_absent_package = None
        class Tools:
            def run(self): return gatewayd_absent_package
    """
    async with make_registry(plugin_of("t", content), installation=installation) as plugged:
        loaded = await plugged.registry.loaded(PluginFamily.TOOL, "t")
        assert await loaded.call("run", scope_of(), {}) is None
