"""What the sources of plugins do, read off their trees."""

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

KINDS = {"Pipe": "pipe", "Filter": "filter", "Action": "action", "Tools": "tool"}
ENTRIES = {"pipe": ("pipe",), "filter": ("inlet", "stream", "outlet"), "action": ("action",)}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Method:
    """One method of the class that makes a plugin."""

    node: Function
    is_public: bool = True

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @cached_property
    def own(self) -> list[ast.AST]:
        """Its nodes, without those of functions inside it."""
        return list(_own(self.node.body))

    @property
    def is_generator(self) -> bool:
        return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in self.own)

    @property
    def parameters(self) -> dict[str, ast.arg]:
        spec = self.node.args
        return {one.arg: one for one in [*spec.args, *spec.kwonlyargs] if one.arg != "self"}

    @property
    def has_keywords(self) -> bool:
        return self.node.args.kwarg is not None

    @property
    def returned(self) -> list[ast.expr | None]:
        return [node.value for node in self.own if isinstance(node, ast.Return)]

    @property
    def yielded(self) -> list[ast.expr | None]:
        return [node.value for node in self.own if isinstance(node, ast.Yield)]

    def text(self, name: str) -> str:
        """The annotation of a parameter, "" without one."""
        annotation = self.parameters[name].annotation
        return "" if annotation is None else ast.unparse(annotation)


@dataclass
class Source:
    """One plugin file."""

    path: Path
    tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.path.read_text())

    @cached_property
    def plugin(self) -> ast.ClassDef:
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        return next(classes[name] for name in KINDS if name in classes)

    @property
    def kind(self) -> str:
        return KINDS[self.plugin.name]

    @cached_property
    def methods(self) -> dict[str, Method]:
        found = [
            node for node in self.plugin.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        return {node.name: Method(node) for node in found}

    @property
    def entries(self) -> list[Method]:
        """The methods that the gateway calls for a request."""
        if self.kind == "tool":
            return [method for name, method in self.methods.items() if not name.startswith("_")]
        return [self.methods[name] for name in ENTRIES[self.kind] if name in self.methods]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def calls(self) -> set[str]:
        """What is called, as it is written."""
        return {ast.unparse(node.func) for node in self.nodes if isinstance(node, ast.Call)}

    @cached_property
    def names(self) -> set[str]:
        """Names and attributes that are used."""
        found = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        return found | {node.attr for node in self.nodes if isinstance(node, ast.Attribute)}

    @cached_property
    def set_on_self(self) -> set[str]:
        targets = [t for node in self.nodes if isinstance(node, ast.Assign) for t in node.targets]
        return {
            t.attr
            for t in targets
            if isinstance(t, ast.Attribute) and isinstance(t.value, ast.Name) and t.value.id == "self"
        }

    @cached_property
    def set_in_class(self) -> set[str]:
        return _assigned(self.plugin.body)

    @cached_property
    def set_in_module(self) -> set[str]:
        return _assigned(self.tree.body)

    @cached_property
    def events(self) -> set[str]:
        """The types of the events that stand in the source; "" for one without."""
        return {kind for node in self.nodes if isinstance(node, ast.Dict) for kind in _event(node)}

    def inner(self, name: str) -> ast.ClassDef | None:
        """Return a class inside the plugin's, such as Valves."""
        found = [node for node in self.plugin.body if isinstance(node, ast.ClassDef) and node.name == name]
        return found[0] if found else None

    def imports(self, *, where: str) -> set[str]:
        """Return modules imported `at top`, in a `guarded` place, or in a `function`."""
        found: set[str] = set()
        for place, node in _placed(self.tree.body, "at top"):
            if place == where:
                found |= _modules(node)
        return found

    @cached_property
    def ids(self) -> set[str]:
        """The ids in mappings that list models or buttons."""
        return {
            value.value
            for node in self.nodes
            if isinstance(node, ast.Dict)
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and key.value == "id"
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        }


@dataclass(frozen=True)
class Row:
    """One habit, and whether a source has it."""

    name: str
    holds: Callable[[Source], object]


def uncovered(rows: Iterable[Row], sources: Sequence[Source]) -> list[str]:
    """Return the names of the rows of which no source is an example."""
    return [row.name for row in rows if not any(row.holds(source) for source in sources)]


def is_kind(value: ast.expr | None, *kinds: type[ast.AST]) -> bool:
    return isinstance(value, kinds)


def is_call(value: ast.expr | None, name: str) -> bool:
    """Tell whether an expression calls something of this name."""
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == name


def is_text(value: ast.expr | None, text: str | None = None) -> bool:
    """Tell whether an expression is a text, or this text."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return text is None or value.value == text
    return text is None and isinstance(value, ast.JoinedStr)


def has_key(value: ast.expr | None, key: str) -> bool:
    """Tell whether an expression is a mapping with a key."""
    return isinstance(value, ast.Dict) and any(
        isinstance(one, ast.Constant) and one.value == key for one in value.keys
    )


def decorated(node: ast.ClassDef | None) -> set[str]:
    """Return the decorators of the methods of a class."""
    if node is None:
        return set()
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    found = [one.func if isinstance(one, ast.Call) else one for m in methods for one in m.decorator_list]
    return {ast.unparse(one) for one in found}


def annotations(node: ast.ClassDef | None) -> set[str]:
    """Return the annotations of the fields of a class."""
    body = [] if node is None else node.body
    return {ast.unparse(one.annotation) for one in body if isinstance(one, ast.AnnAssign)}


def keywords(node: ast.ClassDef | None) -> set[str]:
    """Return the keywords that the fields of a class are declared with."""
    body = [] if node is None else node.body
    values = [one.value for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.value, ast.Call)]
    return {str(keyword.arg) for value in values if isinstance(value, ast.Call) for keyword in value.keywords}


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _own(list(ast.iter_child_nodes(node)))


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    targets = [t for node in body if isinstance(node, ast.Assign) for t in node.targets]
    return {t.id for t in targets if isinstance(t, ast.Name)}


def _event(node: ast.Dict) -> Iterator[str]:
    if not node.keys:
        yield "{}"
    values = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    kind = values.get("type")
    if values.keys() == {"data"}:
        yield ""
    if values.keys() <= {"type", "data"} and isinstance(kind, ast.Constant) and isinstance(kind.value, str):
        yield kind.value


def _placed(body: Sequence[ast.stmt], place: str) -> Iterator[tuple[str, ast.stmt]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield place, node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _placed(node.body, "function")
        elif isinstance(node, ast.Try):
            yield from _placed(node.body, "guarded" if place == "at top" else place)
        elif isinstance(node, ast.If):
            yield from _placed(node.body, "for types" if ast.unparse(node.test) == "TYPE_CHECKING" else place)
        elif isinstance(node, ast.ClassDef | ast.With):
            yield from _placed(node.body, place)


def _modules(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return {str(node.module)}
    return {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
