"""Which functions of the packages ran in the processes of the tests, and which public ones never did.

It costs nothing while tests run: the interpreter notes the first call of each function by itself. CPython
3.11 counts the first calls of a code object, to specialise it after some; later versions report a first call
to a tool of `sys.monitoring`. What runs in other processes only (a daemon, its workers) is not seen.
"""

import ast
import ctypes
import gc
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.suite.source_tree import PACKAGES, ROOT, SOURCES, relative

# In PyCodeObject of CPython 3.11: `short co_warmup`, and what it holds before the first call.
WARMUP_OFFSET, COLD = 52, -8

FOLDERS = tuple(f"{ROOT / package}/" for package in PACKAGES)


def name_of(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(f'{ROOT}/')} {code.co_qualname}"


class Recorder:
    """Notes the functions that run from its making on; one for each process."""

    def __init__(self) -> None:
        self._entered: set[str] = set()
        if sys.version_info >= (3, 12):
            self._monitor(sys.monitoring)

    def _monitor(self, monitoring: Any) -> None:
        tool = monitoring.COVERAGE_ID
        monitoring.use_tool_id(tool, "gatewayd tests")
        monitoring.register_callback(tool, monitoring.events.PY_START, self._enter)
        monitoring.set_events(tool, monitoring.events.PY_START)

    def _enter(self, code: CodeType, _offset: int) -> object:
        if code.co_filename.startswith(FOLDERS):
            self._entered.add(name_of(code))
        return sys.monitoring.DISABLE  # type: ignore[attr-defined,unused-ignore]

    def names(self) -> set[str]:
        """Return `file qualified-name` of each function that ran."""
        if sys.version_info >= (3, 12):
            return self._entered
        return {name_of(code) for code in codes() if has_run(code)}


def has_run(code: CodeType) -> bool:
    """Whether CPython 3.11 entered a code object."""
    return ctypes.c_short.from_address(id(code) + WARMUP_OFFSET).value != COLD


def codes() -> Iterator[CodeType]:
    """Yield the code of each function of ours that this process loaded."""
    gc.unfreeze()
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename.startswith(FOLDERS):
            yield one.__code__
    # pytest collects at its end, several times.
    gc.freeze()


Function = ast.FunctionDef | ast.AsyncFunctionDef


def is_declared_only(function: Function) -> bool:
    """Whether a function has no body but a docstring and `...`, as in an interface, or only raises."""
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in function.body)


def public_functions(body: Iterable[ast.stmt], outer: str = "") -> Iterator[str]:
    """Yield the qualified name of each public function and method, also of nested classes."""
    for node in body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            if isinstance(node, ast.ClassDef):
                yield from public_functions(node.body, f"{outer}{node.name}.")
            elif not is_declared_only(node):
                yield f"{outer}{node.name}"


def all_public(paths: Iterable[Path] = SOURCES) -> set[str]:
    """Return the public functions of files, whose trees are not kept: this is asked once in a process."""
    return {
        f"{relative(path)} {name}"
        for path in paths
        for name in public_functions(ast.parse(path.read_bytes()).body)
    }
