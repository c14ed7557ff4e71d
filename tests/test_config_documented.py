"""Every setting has its line in the sample file and its item in the manual page, and both are true."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from gatewayd.settings import SettingDescription, Settings, changed_settings, definitions, load
from gatewayd.settings.definitions import TABLES, table_fields
from gatewayd.settings.documents import render_sample, update_manual

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "config" / "gatewayd.toml"
PAGE = ROOT / "man" / "gatewayd.toml.5"
STALE = "it is out of date: run python -m tests.write_settings_documents"

each_setting = pytest.mark.parametrize("setting", definitions().values(), ids=lambda each: each.name)


def item(name: str) -> str:
    """Return what the manual page says of a setting."""
    found = re.search(rf"^\.It Ic {name}\n(.*?)^\.(?:It|El)", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found, f"gatewayd.toml(5) does not describe {name}"
    return found.group(1)


def words(roff: str) -> str:
    """Return roff as one line of plain text."""
    text = roff.replace("\\(dq", '"').replace("\\(aq", "'").replace("\\-", "-")
    return " ".join(text.split())


def test_the_sample_is_the_one_that_the_program_makes() -> None:
    assert SAMPLE.read_text() == render_sample(), STALE


def test_the_lists_of_the_page_are_the_ones_that_the_program_makes() -> None:
    assert PAGE.read_text() == update_manual(PAGE.read_text()), STALE


@each_setting
def test_the_page_describes_the_setting(setting: SettingDescription) -> None:
    text = words(item(setting.name))
    assert setting.description in text
    assert f"Takes {setting.expects}" in text
    assert f"Default: {setting.default}." in text
    for variable in (name.upper() for name in setting.names if setting.variables):
        assert f".Ev {variable} " in text
    assert ("Applied by a reload." in text) is setting.reloadable


@pytest.mark.parametrize("name", [name for table in TABLES for name, _, _ in table_fields(table)])
def test_the_page_describes_the_keys_of_providers(name: str) -> None:
    assert "Takes " in item(name)


@each_setting
def test_the_sample_has_the_setting_once(setting: SettingDescription) -> None:
    pattern = rf"^#\[\[{setting.name}\]\]$" if setting.name in TABLES else rf"^#{setting.name} = "
    assert len(re.findall(pattern, SAMPLE.read_text(), re.MULTILINE)) == 1


def test_the_sample_changes_nothing() -> None:
    settings = load(SAMPLE, {})
    assert changed_settings(settings, Settings()) == []
    assert not any(origin.explicit for origin in settings.origins.values())


def test_the_sample_shows_the_defaults(tmp_path: Path) -> None:
    """With its settings uncommented, all but the examples of providers, it still changes nothing."""
    text = SAMPLE.read_text()
    for table in TABLES:
        before_example, example = text.split(f"#[[{table}]]\n")
        text = f"{before_example}\n{example.split(chr(10) * 2, 1)[1]}"
    path = tmp_path / "gatewayd.toml"
    path.write_text(re.sub(r"(?m)^#(?=[a-z0-9_]+ = )", "", text))
    assert set(tomllib.loads(path.read_text())) == set(definitions()) - TABLES.keys()
    settings = load(path, {})
    assert changed_settings(settings, Settings()) == []
    assert all(origin.explicit for name, origin in settings.origins.items() if name not in TABLES)


def test_the_examples_of_a_provider_can_be_used(tmp_path: Path) -> None:
    sample = SAMPLE.read_text()
    start = sample.index("#[[providers]]")
    example = sample[start : sample.index("\n\n", start)].replace("#", "")
    page_example = re.findall(r"\.Bd -literal.*?\n(.*?)\.Ed", PAGE.read_text(), re.DOTALL)[0]
    for name in ("example-key", "openai-key", "claude-key"):
        (tmp_path / name).write_text("key")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    for text in (example, page_example.replace("/etc/gatewayd/", "")):
        path = tmp_path / "gatewayd.toml"
        path.write_text(text)
        assert all(provider.key.get_secret_value() == "key" for provider in load(path, environ).providers)


def test_settings_listen_on_loopback_only_by_default() -> None:
    assert tomllib.loads(re.sub(r"(?m)^#(?=host = )", "", SAMPLE.read_text())) == {"host": "127.0.0.1"}


@pytest.mark.real("mandoc")
def test_the_page_passes_the_linter() -> None:
    command = ["mandoc", "-Tlint", "-Wwarning", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.real("mandoc")
@each_setting
def test_the_rendered_page_has_the_setting(setting: SettingDescription, rendered: str) -> None:
    assert re.search(rf"^ +{setting.name}\b", rendered, re.MULTILINE)


@pytest.fixture(scope="module")
def rendered() -> str:
    command = ["mandoc", "-Tascii", str(PAGE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.sub(".\b", "", done.stdout)
