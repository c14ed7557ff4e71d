"""The source of a plugin: its kind, and the changes under which it runs as it is (peer-compatible)."""

import ast
import hashlib
import inspect
import types
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.plugins.open_webui.import_rewriter import defer_imports
from gatewayd.plugins.records import PluginFamily, PluginKind
from gatewayd.plugins.source.ast_retry import retry_ast_parse

CLASSES: Final = {
    PluginFamily.TOOL: (("Tools", PluginKind.TOOL),),
    PluginFamily.FUNCTION: (
        ("Pipe", PluginKind.PIPE),
        ("Filter", PluginKind.FILTER),
        ("Action", PluginKind.ACTION),
    ),
}
"""The classes that make a plugin, in the order in which they are looked for."""

AWAIT_NAME: Final = "__gatewayd_await__"
"""The name of `make_awaitable` in every plugin; its trailing underscores keep classes from mangling it."""

MAX_ID_CHARACTERS: Final = 128

MAX_SOURCE_BYTES: Final = 8 * 2**20
"""Bytes of a source in a file, and of a request that holds one."""

_FORMER: Final = ("utils", "apps", "main", "config")
_PIPELINES: Final = "Pipeline"
_EVENT: Final = "Event"


@dataclass(frozen=True, slots=True)
class PreparedSource:
    """A source that is ready to run; `classes` are the names of all classes that stand in it."""

    code: types.CodeType
    classes: frozenset[str]


def digest(content: str) -> str:
    """Return what tells two sources apart."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def parse(content: str) -> ast.Module:
    """Return the tree of a source; invalid_request with line and text when it is not Python."""
    try:
        return retry_ast_parse(lambda: ast.parse(content.lstrip("\ufeff")))
    except SyntaxError as error:
        raise _not_python(error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise unreadable_error(error) from error


def prepare(content: str, path: str) -> PreparedSource:
    """Return a source compiled for a module at `path`; lines and the docstring stay where they are.

    `await X` takes values that cannot be awaited too, and imports from the former top-level modules of the
    host find their present ones. Raises invalid_request for what is not Python.
    """
    tree = parse(content)
    classes = frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    try:
        rewritten = defer_imports(ast.fix_missing_locations(_Rewriter().visit(tree)))
        code = compile(rewritten, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _not_python(error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise unreadable_error(error) from error
    return PreparedSource(code, classes)


def detect_kind(content: str) -> tuple[PluginFamily, PluginKind]:
    """Return what a source is by the classes that stand in it, without running it; invalid_request if none.

    A tool is looked for first.
    """
    names = {node.name for node in ast.walk(parse(content)) if isinstance(node, ast.ClassDef)}
    for family in (PluginFamily.TOOL, PluginFamily.FUNCTION):
        for name, kind in CLASSES[family]:
            if name in names:
                return family, kind
    raise no_class_error(names)


def guess_kind(content: str, family: PluginFamily) -> PluginKind:
    """Return what a source of a family looks like; invalid_request for one that is no such plugin."""
    names = frozenset(node.name for node in ast.walk(parse(content)) if isinstance(node, ast.ClassDef))
    for name, kind in CLASSES[family]:
        if name in names:
            return kind
    if names & {name for rows in CLASSES.values() for name, _ in rows} or names & {_PIPELINES, _EVENT}:
        raise no_class_error(names, family)
    # The class may be made some other way; running the source tells.
    return CLASSES[family][0][1]


def kind_of(module: types.ModuleType, family: PluginFamily) -> tuple[PluginKind, type[Any]]:
    """Return the kind and the class of a module that has run; invalid_request when it has none."""
    for name, kind in CLASSES[family]:
        found = getattr(module, name, None)
        if isinstance(found, type):
            return kind, found
    raise no_class_error({name for name, value in vars(module).items() if isinstance(value, type)}, family)


def refuse_pipelines(classes: frozenset[str]) -> None:
    """Raise invalid_request for a source of a Pipelines server, before it runs."""
    known = {name for rows in CLASSES.values() for name, _ in rows}
    if _PIPELINES in classes and not classes & known:
        raise no_class_error(classes)


def no_class_error(names: set[str] | frozenset[str], family: PluginFamily | None = None) -> GatewayError:
    """Return the error for a source without a class that makes it a plugin (of a family)."""
    if _PIPELINES in names:
        why = "it has a class Pipeline, which is for a Pipelines server and not for a chat gateway"
    elif _EVENT in names and not names & {name for rows in CLASSES.values() for name, _ in rows}:
        why = "it has a class Event, a function that hears of system events, which this gateway does not send"
    elif family is PluginFamily.FUNCTION and "Tools" in names:
        why = "it has a class Tools, so it is a tool and not a function"
    elif family is PluginFamily.TOOL and (
        found := [n for n, _ in CLASSES[PluginFamily.FUNCTION] if n in names]
    ):
        why = f"it has a class {found[0]}, so it is a function and not a tool"
    else:
        rows = CLASSES[family] if family else [row for rows in CLASSES.values() for row in rows]
        expected = " or ".join(name for name, _ in rows)
        why = f"it has no class {expected}"
    return invalid(f"cannot load the source: {why}", param="content")


def check_id(text: str) -> str:
    """Return the id of a plugin in lower case; invalid_request for what is no Python identifier."""
    if not text.isidentifier() or len(text) > MAX_ID_CHARACTERS:
        raise invalid(
            f"cannot accept id {shorten(text)!r}: only letters, digits and underscores are allowed,"
            f" no digit in front, {MAX_ID_CHARACTERS} characters at most",
            param="id",
        )
    return text.lower()


def current_module_name(name: str) -> str:
    """Return the name that a module has now, for the former top-level modules of the host too."""
    return f"open_webui.{name}" if name.partition(".")[0] in _FORMER else name


def make_awaitable(value: Any) -> Awaitable[Any]:
    """Return what `await` takes: the value itself, or something that gives the value at once."""
    return value if inspect.isawaitable(value) else _given(value)


async def _given(value: Any) -> Any:
    return value


def unreadable_error(error: Exception) -> GatewayError:
    """Return the error for a source that cannot be read at all."""
    why = str(error) or type(error).__name__
    return invalid(f"cannot read the source: {why}", param="content")


def _not_python(error: SyntaxError) -> GatewayError:
    line = (error.text or "").strip()
    shown = f": {shorten(line)!r}" if line else ""
    where = f" in line {error.lineno}" if error.lineno else ""
    return invalid(f"cannot read the source: SyntaxError{where}: {error.msg}{shown}", param="content")


class _Rewriter(ast.NodeTransformer):
    def visit_Await(self, node: ast.Await) -> ast.Await:
        self.generic_visit(node)
        helper = ast.Name(AWAIT_NAME, ast.Load())
        node.value = ast.copy_location(ast.Call(helper, [node.value], []), node.value)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.level == 0 and node.module:
            node.module = current_module_name(node.module)
        return node
