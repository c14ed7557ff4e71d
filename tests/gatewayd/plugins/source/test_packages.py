"""What is installed, and what a module comes from."""

import sys
from pathlib import Path

import pytest

from gatewayd.plugins.source.packages import choose_requirements, find_unmet, missing_module, missing_part


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory of packages: a distribution with an extra, a namespace, and a module without one."""
    info = tmp_path / "gw_dist-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: gw-dist\nVersion: 1.5\n"
        "Requires-Dist: gw-core ; python_version < '3'\n"
        "Requires-Dist: gw-more>=2 ; extra == 'more'\n"
        "Requires-Dist: gw-dist[more] ; extra == 'all'\n"
        "Requires-Dist: gw-dist[round] ; extra == 'round'\n"
        "Requires-Dist: pydantic ; extra == 'models'\n"
    )
    for name, version in (("gw-broken", ""), ("gw-old", "Version: 1.0-final-2\n")):
        broken = tmp_path / f"{name.replace('-', '_')}-1.dist-info"
        broken.mkdir()
        (broken / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\n{version}")
    (tmp_path / "gw_space" / "there").mkdir(parents=True)
    (tmp_path / "gw_space" / "there" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "gw_module.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("requirement", "is_met"),
    [
        ("gw-dist", True),
        ("Gw_Dist", True),
        ("gw-dist>=1,<2", True),
        ("gw-dist>=2", False),
        ("gw-dist[models]", True),
        ("gw-dist[more]", False),
        ("gw-dist[all]", False),
        ("gw-dist[unknown]", True),
        ("gw-dist[round]", True),
        ("gw-broken", False),
        ("gw-old>=1", False),
        ("gw-absent", False),
        ("gw-absent; python_version < '3'", True),
        ("open_webui>=0.9.1", True),
        ("gw_module", True),
        ("gw-module", True),
        ("gw_module>=1", False),
        ("gw_space", False),
        ("git+https://example.org/x.git", False),
        ("[", False),
    ],
)
def test_a_requirement_is_met_by_what_is_installed(requirement: str, is_met: bool) -> None:
    assert find_unmet([requirement]) == (() if is_met else (requirement,))


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("gw_module", ""),
        ("gw_module.anything", ""),
        ("gw_space", ""),
        ("gw_space.there.anything", ""),
        ("gw_space.absent.more", "gw_space.absent"),
        ("gw_absent.part", "gw_absent"),
        ("pydantic.Nonsense", ""),
    ],
)
def test_the_first_part_that_is_missing_is_told(name: str, part: str) -> None:
    assert missing_part(name) == part
    assert "gw_module" not in sys.modules


@pytest.mark.usefixtures("site")
def test_an_error_tells_the_module_that_is_missing() -> None:
    def missing(statement: str) -> str:
        with pytest.raises(ImportError) as caught:
            exec(statement)
        return missing_module(caught.value)

    assert missing("import gw_absent.part") == "gw_absent"
    assert missing("from gw_space import absent") == "gw_space.absent"
    assert missing("import gw_space.absent") == "gw_space.absent"
    assert missing("from pydantic import Nonsense") == ""


@pytest.mark.parametrize(
    ("module", "chosen"),
    [
        ("google.genai", ["google-genai>=1"]),
        ("google", ["google-genai>=1", "google-auth"]),
        ("PIL", ["Pillow"]),
        ("dotenv", ["python-dotenv"]),
        ("bs4", ["bs4"]),
        ("llama_index.core", ["llama-index-core==0.12"]),
        ("nothing", []),
    ],
)
def test_requirements_are_chosen_by_their_names(module: str, chosen: list[str]) -> None:
    requirements = (
        "google-genai>=1",
        "google-auth",
        "llama-index-core==0.12",
        "Pillow",
        "python-dotenv",
        "bs4",
        "git+https://x",
    )
    assert list(choose_requirements(module, requirements)) == chosen
