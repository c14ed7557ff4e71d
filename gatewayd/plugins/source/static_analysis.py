"""Static analysis of a source: its imports and the events that it sends."""

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gatewayd.plugins.source import code as source_code

TYPES_ONLY: Final = "TYPE_CHECKING"


@dataclass(frozen=True, slots=True)
class ImportedName:
    """One imported name of `module`; `name` is "" for the module itself.

    `guarded` is true within a function, or within a `try` with an `except`.
    """

    module: str
    name: str
    guarded: bool

    @property
    def full(self) -> str:
        """The full name: the module and the name."""
        return f"{self.module}.{self.name}" if self.name else self.module

    @property
    def package(self) -> str:
        """The top-level package of the module."""
        return self.module.partition(".")[0]


@dataclass(frozen=True, slots=True)
class SourceOutline:
    """Imports outside of the standard library, and literal event types."""

    imports: tuple[ImportedName, ...] = ()
    events: tuple[str, ...] = ()


def read_outline(content: str) -> SourceOutline:
    """Return the outline of a source, in order without duplicates; invalid_request when it is not Python.

    An event is a dict with a literal `type` and with `data`. Imports for type checkers are left out.
    """
    tree = source_code.parse(content)
    finder = _Finder()
    finder.visit(tree)
    events = [name for node in ast.walk(tree) if isinstance(node, ast.Dict) and (name := _event(node))]
    return SourceOutline(tuple(dict.fromkeys(finder.found)), tuple(dict.fromkeys(events)))


def _event(node: ast.Dict) -> str:
    fields = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    kind = fields.get("type")
    named = isinstance(kind, ast.Constant) and isinstance(kind.value, str)
    return str(kind.value) if "data" in fields and isinstance(kind, ast.Constant) and named else ""


def _only_types(node: ast.If) -> bool:
    return ast.unparse(node.test).rpartition(".")[2] == TYPES_ONLY


class _Finder(ast.NodeVisitor):
    """Collects imports, and tracks whether they are guarded."""

    def __init__(self) -> None:
        self.found: list[ImportedName] = []
        self._guards = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_guarded(node.body)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_guarded(node.body)

    def visit_Try(self, node: ast.Try) -> None:
        if node.handlers:
            self._visit_guarded(node.body)
        else:
            self._visit_all(node.body)
        self._visit_all([*node.handlers, *node.orelse, *node.finalbody])

    def visit_If(self, node: ast.If) -> None:
        if not _only_types(node):
            self._visit_all(node.body)
        self._visit_all(node.orelse)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._note(alias.name, "")

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = source_code.current_module_name(node.module or "")
        for alias in node.names if not node.level and module else ():
            self._note(module, "" if alias.name == "*" else alias.name)

    def _note(self, module: str, name: str) -> None:
        if module.partition(".")[0] not in sys.stdlib_module_names:
            self.found.append(ImportedName(module, name, self._guards > 0))

    def _visit_guarded(self, body: Iterable[ast.AST]) -> None:
        self._guards += 1
        self._visit_all(body)
        self._guards -= 1

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)
