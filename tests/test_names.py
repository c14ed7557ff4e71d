"""The names of the source and the references in its texts: what a reader may rely on."""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.suite.source_tree import ROOT, SOURCES, TESTS, classes, parsed, relative

MAX_MODULES = 25

# Classes that another program finds by this name: what a plugin is, what a migration is.
NAMED_BY_OTHERS = {
    "gatewayd/plugins/builtin": {"Action", "Filter", "Pipe", "Tools", "Valves"},
    "gatewayd/storage/migrations": {"Migration"},
}

# Words that end with "ing" and are nouns: what is provided, set, or mapped, not the act of it.
NOUNS = {"provisioning", "metering", "setting", "mapping", "string", "ring", "warning", "heading"}

# Modules that import a module by its name as text, and why a plain import would not do.
IMPORTS_BY_TEXT = {
    "gatewayctl/__main__.py": "the commands are loaded after the environment of the process is right",
    "gatewayctl/render.py": "Markdown takes 60 ms to load and few commands print it",
    "gatewayd/__main__.py": "a library that is missing is reported in a sentence",
    "gatewayd/assembly/indexes.py": "numpy is loaded when documents are on, in a thread",
    "gatewayd/assembly/sign_in.py": "the library of LDAP is an extra",
    "gatewayd/bus/redis_client.py": "the library of Redis is an extra",
    "gatewayd/assembly/metrics/services.py": "the SDK of OpenTelemetry is an extra",
    "gatewayd/extract/readers.py": "a worker loads the reader of the format that it is given, and no other",
    "gatewayd/extras.py": "an extra may be absent",
    "gatewayd/plugins/builtin/rate_limit.py": "FastAPI is an extra",
    "gatewayd/plugins/open_webui/finder.py": "a name of Open WebUI is made when a plugin asks for it",
    "gatewayd/plugins/open_webui/import_rewriter.py": "it carries out the import statements of plugins",
    "gatewayd/plugins/open_webui/placeholders.py": "FastAPI and Starlette are extras",
    "gatewayd/plugins/source/check.py": "it tries the imports of a plugin",
    "gatewayd/storage/engine/migrate.py": "the names of migrations start with a digit",
    "gatewayd/upstream/tools/mcp_tools.py": "the library of MCP is an extra",
    "gatewayd/upstream/sources/bedrock_client.py": "the library of Bedrock is an extra",
    "gatewayd/vectors/models/build.py": "onnx is needed once, when a model is built",
    "gatewayd/vectors/worker.py": "a worker loads one of two engines",
}


@pytest.fixture(scope="module", autouse=True)
def _let_go() -> Iterator[None]:
    """Hold no tree of the source for the tests of other files."""
    yield
    parsed.cache_clear()


def refuse(offenders: Iterable[str]) -> None:
    """Fail with all offenders, one a line."""
    listed = sorted(offenders)
    if listed:
        pytest.fail("\n".join([f"{len(listed)} found:", *listed]), pytrace=False)


# Names ----------------------------------------------------------------------------------------------------


def is_named_by_others(path: Path, name: str) -> bool:
    return any(
        relative(path).startswith(f"{folder}/") and name in names for folder, names in NAMED_BY_OTHERS.items()
    )


def test_a_public_class_name_stands_once() -> None:
    places = defaultdict(list)
    for path in SOURCES:
        if not path.is_relative_to(ROOT / "gatewayd"):
            continue
        for outer, node in classes(parsed(path).body):
            is_meta = outer and node.name == "Meta"
            if not node.name.startswith("_") and not is_meta and not is_named_by_others(path, node.name):
                places[node.name].append(f"{relative(path)}:{node.lineno}")
    refuse(f"{name}: {' '.join(found)}" for name, found in places.items() if len(found) > 1)


def assigned_names(tree: ast.Module) -> Iterator[ast.Name]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))


def test_an_upper_bound_starts_with_max() -> None:
    other = re.compile(r"_*(MOST|LONGEST|LARGEST)(_|$)")
    found = [
        f"{relative(path)}:{name.lineno} {name.id}"
        for path in SOURCES
        for name in assigned_names(parsed(path))
        if other.match(name.id)
    ]
    refuse(found)


def last_word(path: Path) -> str:
    stem = path.parent.name if path.name == "__init__.py" else path.stem
    return stem.strip("_").rpartition("_")[2]


def test_no_module_is_named_by_a_gerund() -> None:
    found = [
        relative(path) for path in SOURCES if last_word(path).endswith("ing") and last_word(path) not in NOUNS
    ]
    refuse(found)


def test_no_folder_is_crowded() -> None:
    counts = Counter(path.parent for path in SOURCES if path.name != "__init__.py")
    refuse(f"{relative(path)}: {count} modules" for path, count in counts.items() if count > MAX_MODULES)


def imports_by_text(tree: ast.Module) -> bool:
    """Whether a module uses `import_module` or `__import__`."""
    return any(
        (isinstance(node, ast.Name) and node.id in ("import_module", "__import__"))
        or (isinstance(node, ast.Attribute) and node.attr in ("import_module", "__import__"))
        for node in ast.walk(tree)
    )


def test_modules_are_imported_by_text_where_it_has_a_reason() -> None:
    assert {relative(path) for path in SOURCES if imports_by_text(parsed(path))} == set(IMPORTS_BY_TEXT)


# References -----------------------------------------------------------------------------------------------

# A manual page of ours, and the heading that may follow it: "gatewayd-plugins(7), EVENTS".
PAGE = re.compile(
    r"\b(gateway(?:d|ctl)[a-z.-]*\(\d\))(?:,\s+([A-Z][A-Z0-9-]+(?:\s+(?:[A-Z]\s+)?[A-Z][A-Z0-9-]+)*))?"
)

# What points outside of the tree, or calls the peer by a riddle.
UNRESOLVED = re.compile(
    r"\(\d{1,2}\.\d{1,2}(?:\s*(?:,|;|to|and)\s*\d{1,2}\.\d{1,2})*(?:,\s[a-z ]+)?\)"
    r"|interface[\s-]+spec(?:ification)?\b"
    r"|peer[- ]facts"
    r"|\bplugin\s+rules\b"
    r"|\d\.\d+\s+of\s+the\s+(?:API|plugin|interface)"
    r"|\bAPI\s+family"
    r"|\bpeer[-\s]compatible"
)

# Before a number in brackets: the section of a document that is named, or the version of something.
NAMED_BEFORE = re.compile(r"(?:RFC\s+\d+|version|section|Python|SQLite|PostgreSQL|HTTP)\W*$", re.IGNORECASE)


@cache
def headings(page: str) -> frozenset[str]:
    """Return the headings of `name(section)` in capitals; nothing for a page that does not exist."""
    path = ROOT / "man" / page.rstrip(")").replace("(", ".")
    if not path.is_file():
        return frozenset()
    found = re.findall(r"^\.S[hs] (.+)$", path.read_text(), re.MULTILINE)
    return frozenset(heading.replace('"', "").strip().upper() for heading in found)


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each expression that is only a text: docstrings, also of attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each run of comment lines."""
    run: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        if run and token.start[0] != run[-1][0] + 1:
            yield run[0][0], "\n".join(line for _, line in run)
            run = []
        run.append((token.start[0], token.string.lstrip("# ")))
    if run:
        yield run[0][0], "\n".join(line for _, line in run)


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Return what a person reads in a file, with its line: docstrings and comments, or all of a page."""
    text = path.read_text()
    if path.suffix != ".py":
        return [(1, text)]
    # Few files have a reference; only these are taken apart.
    plain = re.sub(r"\n\s*#", "\n", text)
    if not PAGE.search(plain) and not UNRESOLVED.search(plain):
        return []
    return [*docstrings(parsed(path)), *comments(text)]


def at(path: Path, line: int, text: str, match: re.Match[str]) -> str:
    return f"{relative(path)}:{line + text.count(chr(10), 0, match.start())} {' '.join(match[0].split())}"


def unknown_pages(text: str) -> Iterator[re.Match[str]]:
    """Yield each reference to a page that is not there, or to a heading that it does not have."""
    for match in PAGE.finditer(text):
        heading = " ".join((match[2] or "").split())
        if not headings(match[1]) or (heading and heading not in headings(match[1])):
            yield match


def riddles(text: str) -> Iterator[re.Match[str]]:
    """Yield each reference that nothing in the tree resolves."""
    return (match for match in UNRESOLVED.finditer(text) if not NAMED_BEFORE.search(text[: match.start()]))


def found_in(paths: list[Path], search: Callable[[str], Iterator[re.Match[str]]]) -> list[str]:
    return [
        at(path, line, text, match) for path in paths for line, text in texts(path) for match in search(text)
    ]


def test_each_reference_to_a_page_names_one_of_its_headings() -> None:
    refuse(found_in(SOURCES + TESTS, unknown_pages))


def test_no_reference_points_outside_of_the_tree() -> None:
    pages = [*sorted((ROOT / "man").glob("*.[1-9]")), ROOT / "README.md"]
    refuse(found_in(SOURCES + pages, riddles))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("gatewayd-plugins(7), EVENTS", 0),
        ("gatewayd-plugins(7), IMPORT\n    NAMES, and more", 0),
        ("gatewayd-plugins(7) says so, and RFC 7644, 3.5.2 does", 0),
        ("the section of RFC 7644 (3.5) and version (1.2), and 0.5 seconds", 0),
        ("gatewayd-plugins(7), EVENTUALITIES", 1),
        ("gatewayd-riddles(7), EVENTS", 1),
        ("the files of a message (6.5)", 1),
        ("as requests have them (2.6, 4.6) and (interface specification 4.3)", 2),
        ("4.7 of the plugin rules; 2.8 of the API family's newer form; peer-compatible", 3),
    ],
)
def test_a_reference_that_nothing_resolves_is_found(text: str, found: int) -> None:
    assert len([*unknown_pages(text), *riddles(text)]) == found
