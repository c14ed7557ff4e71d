"""The shape of the source: what a module may import, hold and measure."""

import ast
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.suite.source_tree import PACKAGES, ROOT, SOURCES, TESTS, module_name, parsed

MODULE_GOAL, MODULE_LIMIT = 400, 600
FUNCTION_GOAL, FUNCTION_LIMIT = 40, 60
MIN_TEST_LINES = 15

# A part of a third-party library and the modules that may import it; whole libraries are in .importlinter.
HOMES = {
    "aiohttp.web": ("gatewayd.http",),
    "aiohttp.ClientSession": ("gatewayd.upstream",),
    # A document of the state may name variables of its caller.
    "os.environ": ("gatewayd.settings", "gatewayctl.state_document"),
    "pydantic_settings": ("gatewayd.settings",),
}

# A failure of foreign code is caught whole in these places only.
BROAD_EXCEPT = {"gatewayd/http/errors.py", "gatewayd/plugins/runtime/invoke.py", "gatewayd/tasks.py"}


@pytest.fixture(scope="module", autouse=True)
def _let_go() -> Iterator[None]:
    """Hold no tree of the source for the tests of other files."""
    yield
    parsed.cache_clear()


def each_of(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Make one test of a check of each file; it names all that fail."""

    def one_test(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            failed = {}
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    failed[str(path.relative_to(ROOT))] = str(error)
            assert failed == {}

        test.__name__ = check.__name__
        return test

    return one_test


each_source = each_of(SOURCES)


def lives_in(module: str, homes: Iterable[str]) -> bool:
    return any(module == home or module.startswith(f"{home}.") for home in homes)


def over_goal(message: str) -> None:
    """Report a goal that was missed in the summary, without failing."""
    warnings.warn(pytest.PytestWarning(message), stacklevel=2)


# Imports --------------------------------------------------------------------------------------------------


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield every imported module, `module.name` of every imported name, and every `a.b` that is used."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"


@each_source
def test_each_library_has_one_home(path: Path) -> None:
    module = module_name(path)
    used = set(imported_names(parsed(path)))
    for library, homes in HOMES.items():
        found = any(name == library or name.startswith(f"{library}.") for name in used)
        assert not found or lives_in(module, homes), f"{module} may not use {library}"


# A fresh interpreter for each module would take minutes. A module whose imports nowhere lead back to it runs
# after all that it imports and takes nothing else from other modules, so one interpreter proves all of these.
# The others, and those that take a package as a value, whose modules somebody else may have imported, are
# imported in a forked process each, without any module of ours.
IMPORTER = """
import builtins, importlib, json, os, sys, threading
OURS = ("gatewayd", "gatewayctl")
names, libraries = json.load(sys.stdin)
for library in libraries:
    try:
        importlib.import_module(library)
    except ImportError:
        pass

def ours(name):
    return name.split(".")[0] in OURS

assert not any(map(ours, sys.modules)), "a library imports modules of ours"
imported, odd, plain = {name: set() for name in names}, set(), builtins.__import__

def noting(name, scope=None, local=None, wanted=(), level=0):
    module = plain(name, scope, local, wanted, level)
    importer = (scope or {}).get("__name__", "")
    if ours(name) and ours(importer):
        for full in [f"{name}.{each}" for each in wanted or ()]:
            imported[importer].add(full if full in imported else name)
            if hasattr(sys.modules.get(full), "__path__"):
                odd.add(importer)
        if not wanted:
            odd.add(importer)
    return module

def load(name):
    threads, before = threading.active_count(), dict(os.environ)
    try:
        importlib.import_module(name)
        assert threading.active_count() == threads, "it starts a thread"
        assert dict(os.environ) == before, "it changes the environment"
        if name.startswith("gatewayctl"):
            assert "gatewayd" not in sys.modules, "the command line loads the daemon"
    except BaseException as error:
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)

def leads_back(name):
    seen, left = set(), [name]
    while left:
        for each in imported[left.pop()] - seen:
            if each == name:
                return True
            seen.add(each)
            left.append(each)
    return False

def in_process(function):
    source, sink = os.pipe()
    if child := os.fork():
        os.close(sink)
        answer = os.fdopen(source).read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return answer if status == 0 else None
    os.write(sink, json.dumps(function()).encode())
    os._exit(0)

def load_all():
    builtins.__import__ = noting
    # The command line first: it is checked that nothing of the daemon is there.
    for name in sorted(names):
        load(name)
    for name in names:
        # Before a module its packages run.
        parts = name.split(".")[:-1]
        packages = {".".join(parts[:count]) for count in range(1, len(parts) + 1)}
        imported[name] |= {package for package in packages if imported.get(package)}
    return [name for name in names if name in odd or leads_back(name)]

rest = in_process(load_all)
if rest is None:
    sys.exit(1)
failed = [name for name in json.loads(rest) if in_process(lambda: load(name)) is None]
print(json.dumps([json.loads(rest), failed]))
"""


def third_party_libraries() -> list[str]:
    """Return the top-level names of every library that our sources import at module level."""
    tops = {
        name.split(".")[0]
        for path in SOURCES
        for node in parsed(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    return sorted(tops - set(PACKAGES) - set(sys.stdlib_module_names) - {""})


@pytest.mark.process
def test_each_module_can_be_imported_alone() -> None:
    names = [module_name(path) for path in SOURCES if path.name != "__main__.py"]
    assert len(names) > 30
    run = subprocess.run(
        [sys.executable, "-c", IMPORTER],
        input=json.dumps([names, third_party_libraries()]),
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    by_themselves, failed = json.loads(run.stdout)
    assert failed == [], run.stderr
    # The modules of this package, which gathers them, and nobody else.
    allowed = {"gatewayd", "gatewayd.settings", "gatewayd.settings.operations"}
    assert {name.rpartition(".")[0] or name for name in by_themselves} <= allowed


@each_source
def test_imports_stand_at_the_top(path: Path) -> None:
    functions = (
        node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    hidden = [
        inner.lineno
        for function in functions
        for inner in ast.walk(function)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    ]
    assert hidden == [], f"imports inside functions at lines {hidden}"


# Size -----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default::pytest.PytestWarning")
@each_source
def test_modules_stay_small(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MODULE_LIMIT
    if lines > MODULE_GOAL:
        over_goal(f"{path.relative_to(ROOT)} has {lines} lines, the goal is {MODULE_GOAL}")


def function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its docstring, which may say as much as its contract needs."""
    first = function.body[0]
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    docstring = (first.end_lineno or first.lineno) - first.lineno + 1 if is_docstring else 0
    return (function.end_lineno or function.lineno) - function.lineno + 1 - docstring


def is_table(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is one `return` of a literal: a table of the specification, however long."""
    body = [node for node in function.body if not isinstance(node, ast.Expr)]
    return (
        len(body) == 1 and isinstance(body[0], ast.Return) and isinstance(body[0].value, ast.Tuple | ast.List)
    )


@pytest.mark.filterwarnings("default::pytest.PytestWarning")
@each_source
def test_functions_stay_small(path: Path) -> None:
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_table(node):
            continue
        lines = function_lines(node)
        assert lines <= FUNCTION_LIMIT, f"{node.name} has {lines} lines"
        if lines > FUNCTION_GOAL:
            over_goal(f"{path.relative_to(ROOT)}: {node.name} has {lines} lines, the goal is {FUNCTION_GOAL}")


# Contents -------------------------------------------------------------------------------------------------


@each_source
def test_the_first_line_says_what_the_module_is_for(path: Path) -> None:
    docstring = ast.get_docstring(parsed(path))
    assert docstring, "no docstring"
    first = docstring.splitlines()[0]
    assert re.fullmatch(r"\S.*[.]", first), f"the first line is no sentence: {first!r}"


def caught_names(handler: ast.ExceptHandler) -> list[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [ast.unparse(kind) if kind is not None else "everything" for kind in kinds]


@each_source
def test_failures_are_caught_by_name(path: Path) -> None:
    broad = {"Exception", "BaseException", "everything"}
    found = [
        node.lineno
        for node in ast.walk(parsed(path))
        if (isinstance(node, ast.ExceptHandler) and broad & set(caught_names(node)))
        or (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith("suppress")
            and broad & {ast.unparse(argument) for argument in node.args}
        )
    ]
    if str(path.relative_to(ROOT)) not in BROAD_EXCEPT:
        assert found == [], f"broad except at lines {found}"


@each_source
def test_nothing_depends_on_assert(path: Path) -> None:
    found = [node.lineno for node in ast.walk(parsed(path)) if isinstance(node, ast.Assert)]
    assert found == [], f"assert, which -O removes, at lines {found}"


def is_test_file(path: Path) -> bool:
    return path.name.startswith("test_")


@each_of(filter(is_test_file, TESTS))
def test_no_test_file_is_hollow(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines >= MIN_TEST_LINES, f"{lines} lines: put the tests beside others of its subject"


SHIPPED = [
    path
    for pattern in (
        "*.toml",
        "*.md",
        ".ci/*",
        ".editorconfig",
        ".github/**/*",
        ".importlinter",
        ".pre-commit-config.yaml",
        "LICENSE",
        "config/**/*",
        "man/*",
        "systemd/**/*",
        "tests/**/*.py",
    )
    for path in ROOT.glob(pattern)
    if path.is_file()
]


def machine_paths() -> list[str]:
    """Return the folders that exist on this machine only: the checkout, its interpreter, the home folder."""
    folders = {ROOT, Path.home()}
    if sys.prefix != sys.base_prefix:
        folders.add(Path(sys.prefix))
    return [f"{folder}/" for folder in folders if len(folder.parts) > 1]


@each_of(SOURCES + SHIPPED)
def test_no_file_names_this_machine(path: Path) -> None:
    content = path.read_bytes()
    named = [folder for folder in machine_paths() if folder.encode() in content]
    assert named == []


def test_test_folders_are_no_packages() -> None:
    assert [str(path) for path in (ROOT / "tests").rglob("__init__.py")] == []
