"""Translation of a plugin method into code that calls a named function for each operation.

The translation contains names, constants, branches and calls of `operations`, but no code of the plugin.
Code without a translation becomes a call of `leave`, which aborts the run.
"""

import ast
import inspect
from dataclasses import dataclass
from io import StringIO
from tokenize import TokenError
from types import CodeType, FunctionType
from typing import Any, Final

from gatewayd.plugins.inline.operations import BUILTINS, MAX_INTEGER, METHODS, OPERATORS

MAX_NODES: Final = 300
"""Maximum number of syntax tree nodes of a method."""

Definition = ast.FunctionDef | ast.AsyncFunctionDef

ADDITIONS: Final = {"append": 1, "insert": 2}
"""Methods that add an object to a list, with their number of arguments; the object is the last."""

_GENERATORS: Final = inspect.CO_ASYNC_GENERATOR | inspect.CO_GENERATOR


@dataclass(frozen=True, slots=True)
class TranslatedMethod:
    """A translated method, a function of one value; `nodes` is its size in syntax tree nodes.

    `is_idle` is true when it returns the value unchanged. `own` and `valves` are the attributes of the
    instance and of its valves that it uses.
    """

    code: CodeType
    nodes: int
    is_idle: bool
    own: frozenset[str]
    valves: frozenset[str]


def translate_method(function: FunctionType, source: str, name: str) -> TranslatedMethod | None:
    """Return the translation of a method with the parameter `name`; None when it has none.

    `source` is the text of the whole plugin.
    """
    node = _definition(function, source)
    code = function.__code__
    if node is None or code.co_flags & _GENERATORS or code.co_freevars or code.co_cellvars:
        return None
    taken = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if len(taken) < 2 or name not in taken[1:]:
        return None
    nodes = list(ast.walk(node))
    if len(nodes) > MAX_NODES or any(isinstance(one, ast.Global | ast.Nonlocal) for one in nodes):
        return None
    hidden = frozenset({*taken, *_starred(node.args)}) - {name}
    translator = _Translator(taken[0], frozenset(code.co_varnames), hidden)
    body = translator.statements(node.body)
    if translator.has_set and isinstance(node, ast.AsyncFunctionDef):
        # Asynchronous code relies on running alone in its thread.
        return None
    return TranslatedMethod(
        _compiled(body, name),
        len(nodes),
        _is_idle(node, name),
        frozenset(translator.own_names),
        frozenset(translator.valves),
    )


def _definition(function: FunctionType, source: str) -> Definition | None:
    """Return the syntax tree of a function from its source; None when they do not match."""
    lines = StringIO(source, newline=None).readlines()[function.__code__.co_firstlineno - 1 :]
    try:
        # Methods are indented, and removing the indentation would change multi-line strings.
        found = ast.parse("if True:\n" + "".join(inspect.getblock(lines))).body[0]
    except (SyntaxError, ValueError, RecursionError, TokenError):
        return None
    if not isinstance(found, ast.If) or not isinstance(found.body[0], Definition):
        return None
    node, code = found.body[0], function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = tuple(one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    is_same = (node.name, names) == (code.co_name, code.co_varnames[:count])
    return node if is_same and not node.decorator_list else None


def _starred(arguments: ast.arguments) -> list[str]:
    return [one.arg for one in (arguments.vararg, arguments.kwarg) if one is not None]


def _is_idle(node: Definition, name: str) -> bool:
    *before, last = node.body
    is_nothing = all(
        isinstance(one, ast.Pass) or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        for one in before
    )
    return is_nothing and isinstance(last, ast.Return) and _is_name(last.value, name)


def _is_name(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _compiled(body: list[ast.stmt], name: str) -> CodeType:
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name)], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    made = ast.FunctionDef("inline", arguments, body, [])
    module = ast.fix_missing_locations(ast.Module([made], []))
    code = compile(module, "<inline>", "exec", dont_inherit=True)
    return next(one for one in code.co_consts if isinstance(one, CodeType))


def operation_name(name: str) -> str:
    """Return the name of an operation in a translation, which no plugin can use."""
    return f"+{name}"


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(operation_name(name), ast.Load()), list(arguments), [])


def _text(value: str) -> ast.expr:
    return ast.Constant(value)


def _leave_call() -> ast.expr:
    return _call("leave")


class _Translator:
    """Translator; `own` names the instance, `known` are the local names, `hidden` those without a value."""

    def __init__(self, own: str, known: frozenset[str], hidden: frozenset[str]) -> None:
        self._own = own
        self._known = known
        self._hidden = hidden
        self.own_names: set[str] = set()
        self.valves: set[str] = set()
        self.has_set = False

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        return [self._statement(node) for node in nodes] or [ast.Pass()]

    def _statement(self, node: ast.stmt) -> ast.stmt:
        match node:
            case ast.Pass() | ast.Continue() | ast.Break():
                return node
            case ast.Return(value=value):
                return ast.Return(ast.Constant(None) if value is None else self._expression(value))
            case ast.If(test=test, body=body, orelse=orelse):
                otherwise = self.statements(orelse) if orelse else []
                return ast.If(self._expression(test), self.statements(body), otherwise)
            case ast.For(target=ast.Name(id=name), iter=each, body=body, orelse=orelse):
                if name == self._own:
                    return ast.Expr(_leave_call())
                otherwise = self.statements(orelse) if orelse else []
                target = ast.Name(name, ast.Store())
                return ast.For(
                    target, _call("each", self._expression(each)), self.statements(body), otherwise
                )
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=holder, attr=name), args=given, keywords=[])
            ):
                return ast.Expr(self._addition(holder, name, given) or self._expression(node.value))
            case ast.Expr(value=value):
                return ast.Expr(self._expression(value))
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                return self._assignment(target, self._expression(value))
            case ast.AugAssign(target=target, op=op, value=value):
                return self._change(target, type(op).__name__, self._expression(value))
            case _:
                return ast.Expr(_leave_call())

    def _addition(self, holder: ast.expr, name: str, given: list[ast.expr]) -> ast.expr | None:
        """Return the addition of an object to a list; None for any other call."""
        count = ADDITIONS.get(name)
        if count != len(given) or not isinstance(added := given[-1], ast.Dict):
            return None
        place = self._expression(given[0]) if count == 2 else ast.Constant(...)
        members: list[ast.expr] = []
        for key, value in zip(added.keys, added.values, strict=True):
            if not isinstance(key, ast.Constant) or type(key.value) is not str:
                return None
            members += [key, self._expression(value)]
        return _call("add", self._expression(holder), place, *members)

    def _assignment(self, target: ast.expr, value: ast.expr) -> ast.stmt:
        match target:
            case ast.Name(id=name) if name != self._own:
                return ast.Assign([ast.Name(name, ast.Store())], value)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == self._own:
                if attribute.startswith("__"):
                    return ast.Expr(_leave_call())
                self.own_names.add(attribute)
                self.has_set = True
                return ast.Expr(_call("set_own", _text(attribute), value))
            case ast.Subscript(value=holder, slice=key) if not isinstance(key, ast.Slice):
                return ast.Expr(_call("store", value, self._expression(holder), self._expression(key)))
            case _:
                return ast.Expr(_leave_call())

    def _change(self, target: ast.expr, name: str, value: ast.expr) -> ast.stmt:
        match target:
            case ast.Name() | ast.Attribute():
                before = self._expression(target)
                return self._assignment(target, _call("binary", _text(name), before, value))
            case ast.Subscript(value=holder, slice=key) if not isinstance(key, ast.Slice):
                parts = (self._expression(holder), self._expression(key))
                return ast.Expr(_call("update", _text(name), *parts, value))
            case _:
                return ast.Expr(_leave_call())

    def _expression(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant(value=value):
                return ast.Constant(value) if _is_small(value) else _leave_call()
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute():
                return self._attribute(node)
            case ast.BoolOp(op=op, values=values):
                return ast.BoolOp(op, [self._expression(one) for one in values])
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return ast.IfExp(self._expression(test), self._expression(body), self._expression(orelse))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ast.UnaryOp(ast.Not(), self._expression(operand))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=value)) if type(value) in (int, float):
                return ast.Constant(-value) if _is_small(value) else _leave_call()  # type: ignore[operator]
            case ast.Dict(keys=[]):
                return ast.Dict([], [])
            case ast.List(elts=[]):
                return ast.List([], ast.Load())
            case _:
                return self._operation(node)

    def _operation(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op).__name__ in OPERATORS:
                sides = (self._expression(left), self._expression(right))
                return _call("binary", _text(type(op).__name__), *sides)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._comparison(self._expression(left), op, self._expression(right))
            case ast.Subscript(value=holder, slice=ast.Slice(lower=lower, upper=upper, step=None)):
                bounds = [
                    ast.Constant(None) if one is None else self._expression(one) for one in (lower, upper)
                ]
                return _call("part", self._expression(holder), *bounds)
            case ast.Subscript(value=holder, slice=key) if not isinstance(key, ast.Slice):
                return _call("item", self._expression(holder), self._expression(key))
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self._translate_call(function, arguments)
            case ast.JoinedStr(values=values):
                return _call("joined", *map(self._piece, values))
            case _:
                return _leave_call()

    def _bound(self, node: ast.expr | None) -> ast.expr:
        return ast.Constant(None) if node is None else self._expression(node)

    def _name(self, name: str) -> ast.expr:
        if name in self._hidden:
            return _leave_call()
        # A global name may change at any time.
        return ast.Name(name, ast.Load()) if name in self._known else _leave_call()

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        # Names that begin with two underscores are mangled in classes.
        if not node.attr.startswith("__"):
            if _is_name(node.value, self._own):
                self.own_names.add(node.attr)
                return _call("own", _text(node.attr))
            inner = node.value
            if (
                isinstance(inner, ast.Attribute)
                and inner.attr == "valves"
                and _is_name(inner.value, self._own)
            ):
                self.own_names.add("valves")
                self.valves.add(node.attr)
                return _call("valve", _text(node.attr))
        return _leave_call()

    def _comparison(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        match op:
            case ast.Is() | ast.IsNot():
                is_known = isinstance(right, ast.Constant) and right.value in (None, True, False)
                return ast.Compare(left, [op], [right]) if is_known else _leave_call()
            case ast.In():
                return _call("has", left, right)
            case ast.NotIn():
                return ast.UnaryOp(ast.Not(), _call("has", left, right))
            case _:
                return _call("compare", _text(type(op).__name__), left, right)

    def _translate_call(self, function: ast.expr, arguments: list[ast.expr]) -> ast.expr:
        match function:
            case ast.Attribute(value=holder, attr=name) if name in METHODS:
                return _call(
                    "method", _text(name), self._expression(holder), *map(self._expression, arguments)
                )
            case ast.Name(id="isinstance") if len(arguments) == 2 and isinstance(arguments[1], ast.Name):
                names = ("isinstance", arguments[1].id)
                if not self._known.intersection(names):
                    return _call("is_a", self._expression(arguments[0]), _text(arguments[1].id))
                return _leave_call()
            case ast.Name(id=name) if name in BUILTINS and name not in self._known and len(arguments) == 1:
                return _call("builtin", _text(name), self._expression(arguments[0]))
            case _:
                return _leave_call()

    def _piece(self, node: ast.expr) -> ast.expr:
        match node:
            case ast.Constant():
                return self._expression(node)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._expression(value)
            case _:
                return _leave_call()


def _is_small(value: Any) -> bool:
    if type(value) is int:
        return abs(value) < MAX_INTEGER
    return value is None or type(value) in (str, float, bool)
