"""Finds the regular expressions of the source by its syntax tree, and how each is used."""

import ast
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("gatewayd", "gatewayctl")
ANCHORED = frozenset({"match", "fullmatch"})
SEARCHING = frozenset({"search", "sub", "subn", "split", "findall", "finditer"})
METHODS = ANCHORED | SEARCHING


@dataclass(frozen=True)
class Expression:
    """One expression: where it stands, what it is, and whether each use begins where the text does."""

    place: str
    pattern: str | bytes
    flags: int
    is_anchored: bool


@dataclass(frozen=True)
class Made:
    """A call whose expression is put together of values that only a running program has."""

    place: str


@dataclass(frozen=True)
class Module:
    """One file of the source; `uses` has for each name the methods it is asked for, "" for another use.

    Names are `name` and `module.name`; `values` are those of the module. `calls` are those of `re` with their
    methods, `owners` the names of calls that are constants, and `hidden` the uses of `re` that are not read
    here: under another name, or without being called. The syntax tree is not kept: all together are large.
    """

    name: str
    calls: Sequence[tuple[str, ast.Call]]
    owners: Mapping[ast.Call, str]
    hidden: Sequence[str]
    imports: frozenset[tuple[str, str]]
    renamed: frozenset[str]
    uses: Mapping[str, set[str]]
    values: Callable[[], dict[str, Any]]


def read_module(name: str, source: str) -> Module:
    """Return a file with its expressions, what it imports by name and how it uses names."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    imports: set[tuple[str, str]] = set()
    renamed: set[str] = set()
    methods: dict[ast.expr, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imports |= {(node.module or "", alias.name) for alias in node.names}
            renamed |= {alias.name for alias in node.names if alias.asname is not None}
        elif isinstance(node, ast.Attribute):
            methods[node.value] = node.attr
    uses: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            uses.setdefault(node.id, set()).add(methods.get(node, ""))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            uses.setdefault(f"{node.value.id}.{node.attr}", set()).add(methods.get(node, ""))
    for other in renamed:
        uses.setdefault(other, set()).add("")
    return Module(
        name,
        [found for node in nodes if (found := _called(node)) is not None],
        _owners(tree),
        _hidden(name, nodes, imports),
        frozenset(imports),
        frozenset(renamed),
        uses,
        lambda: vars(importlib.import_module(name)),
    )


def modules() -> list[Module]:
    """Return every file of the source."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found.append(read_module(name, path.read_text()))
    return found


def expressions(source: list[Module]) -> Iterator[Expression | Made]:
    """Yield every expression of some files."""
    for module in source:
        names = module.values() if module.calls else {}
        for method, call in module.calls:
            name = module.owners.get(call)
            place = f"{module.name}:{call.lineno}" if name is None else f"{module.name}.{name}"
            value = _value(call, names)
            if value is None:
                yield Made(place)
                continue
            is_anchored = method in ANCHORED
            if method == "compile" and name is not None:
                is_anchored = _is_anchored(name, module, source)
            yield Expression(place, *value, is_anchored)


def _hidden(name: str, nodes: Sequence[ast.AST], imports: Set[tuple[str, str]]) -> list[str]:
    """Return the uses of `re` that are not read here: under another name, or without being called."""
    called = {node.func for node in nodes if isinstance(node, ast.Call)}
    bases = {node.value for node in nodes if isinstance(node, ast.Attribute)}
    found = [f"{name}: from re" for source, _ in imports if source == "re"]
    for node in nodes:
        match node:
            case ast.Import(names=names):
                found += [f"{name}: as {each.asname}" for each in names if each.name == "re" and each.asname]
            case ast.Attribute(value=ast.Name(id="re"), attr=attr) if attr in {*METHODS, "compile"}:
                found += [] if node in called else [f"{name}:{node.lineno}"]
            case ast.Name(id="re"):
                found += [] if node in bases else [f"{name}:{node.lineno}"]
    return found


def _called(node: ast.AST) -> tuple[str, ast.Call] | None:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method)):
            return (method, node) if method in {*METHODS, "compile"} else None
    return None


def _owners(tree: ast.Module) -> dict[ast.Call, str]:
    """Return the names of expressions that are constants of a module."""
    found = {}
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call() as call):
                found[call] = name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                found[call] = name
    return found


def _value(call: ast.Call, names: dict[str, Any]) -> tuple[str | bytes, int] | None:
    """Return the pattern and flags of a call; None when only a running program has them."""
    flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    patterns = [keyword.value for keyword in call.keywords if keyword.arg == "pattern"]
    place = {"compile": 1, "sub": 4, "subn": 4, "split": 3}.get(call.func.attr, 2)  # type: ignore[attr-defined]
    flags += call.args[place : place + 1]
    try:
        pattern = _evaluated([*patterns, *call.args][0], names)
        return pattern, int(_evaluated(flags[0], names)) if flags else 0
    except NameError:
        return None


def _evaluated(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<expression>", "eval"), dict(names))


def _is_anchored(name: str, module: Module, source: list[Module]) -> bool:
    """Tell whether a compiled expression is used at beginnings alone; a use of another kind is any use."""
    parent, _, own = module.name.rpartition(".")
    methods: set[str] = set()
    for each in source:
        if each is module or (module.name, name) in each.imports:
            methods |= each.uses.get(name, set())
        if (parent, own) in each.imports:
            methods |= each.uses.get(f"{own}.{name}", {""} if own in each.renamed else set())
    return bool(methods) and methods <= ANCHORED
