"""Source of a plugin: parsing, kind, and the rewriting that lets plugins of Open WebUI run unchanged."""

import ast
import hashlib
import inspect
import types
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.plugins.open_webui.import_rewriter import defer_imports
from gatewayd.plugins.records import PluginFamily, PluginKind

Result = TypeVar("Result")

MAX_ATTEMPTS: Final = 10

CLASSES: Final = {
    PluginFamily.TOOL: (("Tools", PluginKind.TOOL),),
    PluginFamily.FUNCTION: (
        ("Pipe", PluginKind.PIPE),
        ("Filter", PluginKind.FILTER),
        ("Action", PluginKind.ACTION),
    ),
}
"""Classes of plugins by family, in the order of their detection."""

AWAIT_NAME: Final = "__gatewayd_await__"
"""Name of `make_awaitable` in every plugin; its trailing underscores prevent name mangling in classes."""

MAX_ID_CHARACTERS: Final = 128

MAX_SOURCE_BYTES: Final = 8 * 2**20
"""Maximum size of a source file, and of a request with a source."""

_FORMER: Final = ("utils", "apps", "main", "config")
_PIPELINES: Final = "Pipeline"
_EVENT: Final = "Event"


@dataclass(frozen=True, slots=True)
class PreparedSource:
    """A compiled source; `classes` are the names of all its classes."""

    code: types.CodeType
    classes: frozenset[str]


def digest(content: str) -> str:
    """Return the SHA-256 of a source in hexadecimal."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


def retry_ast_parse(work: Callable[[], Result]) -> Result:
    """Return the result of `work`, which calls `ast.parse` or `ast.literal_eval`; retried on SystemError.

    Before Python 3.13 all threads share one counter of the tree depth. A thread switch during the conversion,
    which garbage collection may cause, raises SystemError for mismatched depths.
    """
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return work()
        except SystemError:
            continue
    return work()


def parse(content: str) -> ast.Module:
    """Return the syntax tree of a source; invalid_request with line and text when it is not Python."""
    try:
        return retry_ast_parse(lambda: ast.parse(content.lstrip("\ufeff")))
    except SyntaxError as error:
        raise _not_python(error) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise unreadable_error(error) from error


def prepare(content: str, path: str) -> PreparedSource:
    """Return a source compiled for a module at `path`, with its line numbers and docstring.

    The code accepts `await X` for values that are not awaitable, and imports from former top-level modules
    of Open WebUI are redirected to the present ones. Raises invalid_request when it is not Python.
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
    """Return family and kind of a source by its class names, without running it.

    A class Tools takes precedence. Raises invalid_request when no class makes it a plugin.
    """
    names = {node.name for node in ast.walk(parse(content)) if isinstance(node, ast.ClassDef)}
    for family in (PluginFamily.TOOL, PluginFamily.FUNCTION):
        for name, kind in CLASSES[family]:
            if name in names:
                return family, kind
    raise no_class_error(names)


def guess_kind(content: str, family: PluginFamily) -> PluginKind:
    """Return the probable kind of a source; invalid_request when it is a plugin of another family."""
    names = frozenset(node.name for node in ast.walk(parse(content)) if isinstance(node, ast.ClassDef))
    for name, kind in CLASSES[family]:
        if name in names:
            return kind
    if names & {name for rows in CLASSES.values() for name, _ in rows} or names & {_PIPELINES, _EVENT}:
        raise no_class_error(names, family)
    # The class may be made dynamically, which is known only after the source has run.
    return CLASSES[family][0][1]


def kind_of(module: types.ModuleType, family: PluginFamily) -> tuple[PluginKind, type[Any]]:
    """Return kind and class of a module that has run; invalid_request without a plugin class."""
    for name, kind in CLASSES[family]:
        found = getattr(module, name, None)
        if isinstance(found, type):
            return kind, found
    raise no_class_error({name for name, value in vars(module).items() if isinstance(value, type)}, family)


def refuse_pipelines(classes: frozenset[str]) -> None:
    """Raise invalid_request for a plugin of a Pipelines server, before it runs."""
    known = {name for rows in CLASSES.values() for name, _ in rows}
    if _PIPELINES in classes and not classes & known:
        raise no_class_error(classes)


def no_class_error(names: set[str] | frozenset[str], family: PluginFamily | None = None) -> GatewayError:
    """Return the error for a source without a plugin class of the family, or of any family for None."""
    if _PIPELINES in names:
        why = "it has a class Pipeline, which is for a Pipelines server and not for a chat gateway"
    elif _EVENT in names and not names & {name for rows in CLASSES.values() for name, _ in rows}:
        why = "it has a class Event, a function for system events, which this gateway does not send"
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
    """Return the id of a plugin in lower case; invalid_request when it is not a Python identifier."""
    if not text.isidentifier() or len(text) > MAX_ID_CHARACTERS:
        raise invalid(
            f"cannot accept id {shorten(text)!r}: expected letters, digits and underscores,"
            f" not starting with a digit, at most {MAX_ID_CHARACTERS} characters",
            param="id",
        )
    return text.lower()


def current_module_name(name: str) -> str:
    """Return the present name of a module, also for a former top-level module of Open WebUI."""
    return f"open_webui.{name}" if name.partition(".")[0] in _FORMER else name


def make_awaitable(value: Any) -> Awaitable[Any]:
    """Return an awaitable value unchanged, and any other value as an awaitable that returns it."""
    return value if inspect.isawaitable(value) else _return_later(value)


async def _return_later(value: Any) -> Any:
    return value


def unreadable_error(error: Exception) -> GatewayError:
    """Return the error for a source that cannot be parsed or compiled."""
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
