"""gatewayd-internals(7): its layers and libraries are those of the import contracts, its files are there."""

import configparser
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "man" / "gatewayd-internals.7").read_text()


def section(name: str, end: str) -> str:
    """Return what stands between two section headings of the page."""
    return PAGE.split(f".Sh {name}\n")[1].split(f".Sh {end}\n")[0]


def literal(text: str) -> list[str]:
    """Return the lines of the first literal display, continued lines joined."""
    block = re.split(r"^\.[BE]d.*\n", text, flags=re.MULTILINE)[1]
    return block.replace("\n    ", " ").splitlines()


def contracts() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    return parser


def test_the_layers_are_those_of_the_import_contract() -> None:
    written = contracts()["importlinter:contract:layers"]["layers"].strip().splitlines()
    held = [" ".join(re.findall(r"\w+", line)) for line in written]
    assert literal(section("LAYERS", "LIBRARIES")) == held


def test_every_package_is_described() -> None:
    described = set(re.findall(r"^\.It Pa (\w+)$", section("LAYERS", "LIBRARIES"), re.MULTILINE))
    packages = {path.parent.name for path in (ROOT / "gatewayd").glob("*/__init__.py")} | {"web"}
    assert described == packages


@pytest.mark.parametrize("journey", section("JOURNEYS", "GLOSSARY").split("\n.Ss ")[1:])
def test_the_files_of_the_journeys_are_there(journey: str) -> None:
    files = [name for line in literal(journey) for name in re.findall(r"[\w/]+\.py", line)]
    assert len(files) > 5
    assert [name for name in files if not (ROOT / "gatewayd" / name).is_file()] == []


def test_the_other_files_of_the_page_are_there() -> None:
    named = re.findall(r"^\.(?:It )?Pa (\S+/\S+)", PAGE, re.MULTILINE)
    assert [
        name for name in named if not any((ROOT / base / name).exists() for base in ("", "gatewayd"))
    ] == []


def test_each_library_has_the_home_of_its_import_contract() -> None:
    homes: dict[str, set[str]] = {}
    for contract in contracts().values():
        for line in contract.get("ignore_imports", "").strip().splitlines():
            importer, _, library = line.partition(" -> ")
            homes.setdefault(library, set()).add(importer.removesuffix(".**"))
    rows = re.findall(r"^\.It (.+) Ta (\S+)$", section("LIBRARIES", "JOURNEYS"), re.MULTILINE)
    written = {name: home for names, home in rows for name in names.split(", ")}
    assert len(written) > 20
    # Typer is forbidden to the daemon alone, and only parts of aiohttp are.
    for library in written.keys() - {"typer", "aiohttp.web"}:
        home = written[library].replace("/", ".")
        expected = home if home.startswith("gatewayctl") else f"gatewayd.{home}"
        assert any(place == expected or place.startswith(f"{expected}.") for place in homes[library]), library
