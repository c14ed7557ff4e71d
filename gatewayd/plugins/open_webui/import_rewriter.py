"""Rewriting of imports, so that a plugin loads although it imports `open_webui` names that are missing.

An unguarded import at module level yields a placeholder for a missing name. A guarded import (in a function,
in a `try` with a matching `except`, in `suppress`) is left alone and raises ImportError, so that the fallback
of the plugin runs.

`defer_imports` changes the syntax tree. It adds nothing to `sys.modules` that other plugins could see.
"""

import ast
import copy
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from gatewayd.plugins.open_webui.placeholders import make_placeholder

PACKAGE: Final = "open_webui"
CATCHING_EXCEPTIONS: Final = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
ABSENT: Final = object()


@dataclass(slots=True)
class MissingNames:
    """Missing names found while one plugin loads: full names, each once, in the order of the imports."""

    plugin_id: str
    missing: list[str] = field(default_factory=list)

    def note(self, name: str) -> None:
        """Add a missing name."""
        if name not in self.missing:
            self.missing.append(name)


_noted: ContextVar[MissingNames | None] = ContextVar("gatewayd_plugin_missing_names", default=None)


@contextmanager
def collect_missing_names(plugin_id: str) -> Iterator[MissingNames]:
    """Collect the missing names of the plugin module that runs in this context."""
    noted = MissingNames(plugin_id)
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def defer_imports(tree: ast.Module) -> ast.Module:
    """Rewrite the unguarded imports of `open_webui` names, which then yield placeholders.

    Changes the tree in place and returns it; line numbers stay. Old names (`utils`, `apps`, ...) must be
    rewritten before.
    """
    deferred: ast.Module = _Unguarded().visit(tree)
    return ast.fix_missing_locations(deferred)


def unguarded_names(tree: ast.Module) -> Sequence[str]:
    """Return the full `open_webui` names of the unguarded imports of a module, in order."""
    finder = _Unguarded()
    finder.visit(copy.deepcopy(tree))
    return finder.names


def obtain(module: str, name: str) -> Any:
    """Return the value of `from module import name`, or a placeholder whose name is recorded."""
    full = f"{module}.{name}"
    try:
        found = getattr(importlib.import_module(module), name, ABSENT)
        return importlib.import_module(full) if found is ABSENT else found
    except ImportError:
        return _missing(full)


def obtain_module(module: str) -> Any:
    """Return the value of `import module as x`, or a placeholder whose name is recorded."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return _missing(module)


def obtain_package(module: str) -> Any:
    """Return the value of `import module`: the package, whether or not the module exists."""
    obtain_module(module)
    return obtain_module(PACKAGE)


def _missing(name: str) -> Any:
    noted = _noted.get()
    if noted is not None:
        noted.note(name)
    return make_placeholder(name)


def _is_ours(module: str | None) -> bool:
    return module is not None and (module == PACKAGE or module.startswith(f"{PACKAGE}."))


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind).rpartition(".")[2] in CATCHING_EXCEPTIONS for kind in kinds)


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "suppress"


class _Unguarded(ast.NodeTransformer):
    """Finds and rewrites unguarded imports; `names` are the names that they import."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_Try(self, node: ast.Try) -> ast.AST:
        if not any(_catches(handler) for handler in node.handlers):
            node.body = self._visited(node.body)
        for handler in node.handlers:
            handler.body = self._visited(handler.body)
        node.orelse = self._visited(node.orelse)
        node.finalbody = self._visited(node.finalbody)
        return node

    def visit_With(self, node: ast.With) -> ast.AST:
        if any(_suppresses(item) for item in node.items):
            return node
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        if not any(_is_ours(alias.name) for alias in node.names):
            return node
        made: list[ast.stmt] = []
        for alias in node.names:
            if not _is_ours(alias.name):
                made.append(ast.Import([alias]))
                continue
            self.names.append(alias.name)
            how = "obtain_module" if alias.asname else "obtain_package"
            made += _binding(alias.asname or PACKAGE, how, [alias.name])
        return [ast.copy_location(statement, node) for statement in made]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if node.level or not _is_ours(node.module) or node.names[0].name == "*":
            return node
        made: list[ast.stmt] = []
        for alias in node.names:
            self.names.append(f"{node.module}.{alias.name}")
            made += _binding(alias.asname or alias.name, "obtain", [str(node.module), alias.name])
        return [ast.copy_location(statement, node) for statement in made]

    def _visited(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return self.generic_visit(ast.Module(body, [])).body  # type: ignore[attr-defined,no-any-return]


def _binding(target: str, how: str, names: list[str]) -> list[ast.stmt]:
    """Return the statements for `target = how(*names)`, with the import of `how`."""
    hidden = f"__{how}__"
    call = ast.Call(ast.Name(hidden, ast.Load()), [ast.Constant(name) for name in names], [])
    return [
        ast.ImportFrom(__name__, [ast.alias(how, hidden)], 0),
        ast.Assign([ast.Name(target, ast.Store())], call),
    ]
