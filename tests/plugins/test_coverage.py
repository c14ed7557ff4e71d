"""The corpus has an example of every habit of published plugins, read off its sources."""

import ast
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gatewayd.events.event_types import EVENT_TYPES
from tests.fakes.daemons.plugin_site import BAD, CORPUS
from tests.fakes.plugins.source_facts import (
    ENTRIES,
    Method,
    Row,
    Source,
    annotations,
    decorated,
    has_key,
    is_call,
    is_kind,
    is_text,
    keywords,
    uncovered,
)

GOOD = [Source(path) for path in sorted(CORPUS.glob("*.py"))]
FAULTY = sorted(path.stem for path in BAD.glob("*.py"))

PARAMETERS = (
    "__event_emitter__",
    "__user__",
    "__request__",
    "__event_call__",
    "__metadata__",
    "__model__",
    "__files__",
    "__task__",
    "__messages__",
    "__chat_id__",
    "__message_id__",
    "__session_id__",
    "__tools__",
    "__id__",
    "__task_body__",
    "__pipe_id__",
    "__oauth_token__",
    "__valves__",
)
KIND_NAMES = ("pipe", "filter", "action", "tool")
HOOKS = ("on_startup", "on_shutdown", "on_valves_updated")
OWN_EVENTS = {"chat:active", "chat:list", "chat:reload", "chat:outlet", "chat:tasks:cancel"}


def entry(
    kind: str, holds: Callable[[Method], object], name: str | None = None
) -> Callable[[Source], object]:
    """Return a check of the methods that are called for a request."""

    def check(source: Source) -> object:
        methods = [method for method in source.entries if name in (None, method.name)]
        return source.kind == kind and any(holds(method) for method in methods)

    return check


def demanded(kind: str, name: str, parameter: str, *, is_async: bool) -> Row:
    """Return the row for a parameter without a default."""

    def holds(method: Method) -> bool:
        spec = method.node.args
        names = [one.arg for one in spec.args][: len(spec.args) - len(spec.defaults)]
        return method.is_async is is_async and parameter in names

    word = "async" if is_async else "plain"
    return Row(f"{word} {kind} {name}: {parameter}", entry(kind, holds, None if kind == "tool" else name))


def returns(kind: str, what: str, holds: Callable[[ast.expr | None], object]) -> Row:
    return Row(
        f"{kind} returns {what}",
        entry(kind, lambda method: any(holds(value) for value in method.returned)),
    )


def each(label: str, words: Sequence[str], holds: Callable[[Source, str], object]) -> list[Row]:
    """Return a row for each of some words."""
    return [Row(f"{label} {word}", lambda source, word=word: holds(source, word)) for word in words]


def says(name: str, *words: str, method: str | None = None) -> Row:
    """Return a row for sources, or methods of theirs, in which all of these words stand."""

    def holds(source: Source) -> bool:
        if method is not None and method not in source.methods:
            return False
        text = ast.unparse(source.tree if method is None else source.methods[method].node)
        return all(word in text for word in words)

    return Row(name, holds)


def header(name: str, key: str) -> Row:
    """Return a row for sources with a key in their header."""
    return Row(name, lambda source: f"\n{key}: " in (ast.get_docstring(source.tree) or ""))


def imports(name: str, start: str, where: str) -> Row:
    """Return a row for sources that import something that begins so."""
    return Row(name, lambda source: any(one.startswith(start) for one in source.imports(where=where)))


def raises(method: Method) -> bool:
    return any(is_kind(node, ast.Raise) for node in method.own)


def parameter_rows() -> list[Row]:
    hooks = [(kind, name) for kind, names in {**ENTRIES, "tool": ("method",)}.items() for name in names]
    return [
        demanded(kind, name, parameter, is_async=is_async)
        for kind, name in hooks
        for is_async in (True, False)
        for parameter in PARAMETERS
    ]


def annotated(kind: str, word: str) -> Row:
    return Row(
        f"{kind} parameter of {word}",
        entry(kind, lambda method: any(word in method.text(name) for name in method.parameters)),
    )


def _says_manifold(source: Source) -> bool:
    return "self.type = 'manifold'" in ast.unparse(source.plugin)


def _members(source: Source) -> set[str]:
    return {*source.methods, *source.set_on_self, *source.set_in_class}


def _fields(source: Source) -> set[str]:
    return {name.partition("[")[0] for name in annotations(source.inner("Valves"))}


def _calls_in(source: Source, name: str, *, is_async: bool) -> bool:
    found = [method for method in source.entries if method.is_async is is_async]
    return any(f"{name}(" in ast.unparse(method.node) for method in found)


def _emits(source: Source) -> bool:
    return bool(source.calls & {"__event_emitter__", "self.event_emitter"})


def _goes_on(method: Method) -> bool:
    return "create_task" in ast.unparse(method.node) and bool(method.returned)


def _sets_up_logging(source: Source) -> bool:
    statements = [ast.unparse(node) for node in source.tree.body if isinstance(node, ast.Expr)]
    return any(statement.startswith("logging.basicConfig(") for statement in statements)


def _counts(source: Source) -> bool:
    counted = [node.target for node in source.nodes if isinstance(node, ast.AugAssign)]
    return any(ast.unparse(target).startswith("self.") for target in counted)


KIND_ROWS = [
    Row("async pipe", entry("pipe", lambda m: m.is_async and not m.is_generator)),
    Row("plain pipe", entry("pipe", lambda m: not m.is_async and not m.is_generator)),
    Row("async generator pipe", entry("pipe", lambda m: m.is_async and m.is_generator)),
    Row("plain generator pipe", entry("pipe", lambda m: not m.is_async and m.is_generator)),
    Row("pipes, a plain method", lambda s: "pipes" in s.methods and not s.methods["pipes"].is_async),
    Row("pipes, an async method", lambda s: "pipes" in s.methods and s.methods["pipes"].is_async),
    Row("pipes, an attribute", lambda s: "pipes" in s.set_on_self),
    Row("manifold by self.type alone", lambda s: _says_manifold(s) and "pipes" not in _members(s)),
    Row("a name before the models", lambda s: "name" in s.set_on_self and "pipes" in _members(s)),
    *each("sub id with", ("/", "@", " "), lambda source, sign: any(sign in one for one in source.ids)),
    *(Row(f"async {hook}", entry("filter", lambda m: m.is_async, hook)) for hook in ENTRIES["filter"]),
    *(Row(f"plain {hook}", entry("filter", lambda m: not m.is_async, hook)) for hook in ENTRIES["filter"]),
    Row("priority valve", lambda s: s.kind == "filter" and "priority" in ast.unparse(s.plugin)),
    Row("toggle", lambda s: "toggle" in s.set_on_self),
    Row("icon", lambda s: "icon" in s.set_on_self),
    Row("file_handler of the instance", lambda s: "file_handler" in s.set_on_self),
    Row("file_handler of the module", lambda s: "file_handler" in s.set_in_module),
    Row("inlet returns nothing", entry("filter", lambda m: not m.returned, "inlet")),
    Row("stream returns nothing", entry("filter", lambda m: not m.returned, "stream")),
    Row("outlet returns nothing", entry("filter", lambda m: not m.returned, "outlet")),
    *(Row(f"{hook} raises", entry("filter", raises, hook)) for hook in ENTRIES["filter"]),
    Row("a filter raises HTTPException", lambda s: s.kind == "filter" and "HTTPException" in s.calls),
    Row("async action", entry("action", lambda m: m.is_async)),
    Row("plain action", entry("action", lambda m: not m.is_async)),
    Row("sub-actions of the class", lambda s: "actions" in s.set_in_class),
    Row("sub-actions of the module", lambda s: "actions" in s.set_in_module),
    Row("icon in the header", lambda s: "icon_url:" in (ast.get_docstring(s.tree) or "")),
    Row("async tool", entry("tool", lambda m: m.is_async)),
    Row("plain tool", entry("tool", lambda m: not m.is_async)),
    Row("tool without docstring", entry("tool", lambda m: ast.get_docstring(m.node) is None)),
    Row("tool with :param name:", entry("tool", lambda m: ":param " in (ast.get_docstring(m.node) or ""))),
    Row("tool with :params name:", entry("tool", lambda m: ":params " in (ast.get_docstring(m.node) or ""))),
    Row(
        "tool without annotations",
        entry("tool", lambda m: m.parameters and not m.text(next(iter(m.parameters)))),
    ),
    *(
        annotated("tool", word)
        for word in ("Literal", "Optional", "List[", "Dict[", "Union[", "bool", "Place")
    ),
    Row("tool that raises", entry("tool", raises)),
    Row("citation off", lambda s: s.kind == "tool" and "citation" in s.set_on_self),
]

RESULT_ROWS = [
    returns("pipe", "a text", is_text),
    returns("pipe", "an empty text", lambda value: is_text(value, "")),
    returns("pipe", "None", lambda value: is_kind(value, ast.Constant) and ast.unparse(value) == "None"),
    returns("pipe", "a completion", lambda value: has_key(value, "choices")),
    returns("pipe", "an error", lambda value: has_key(value, "error")),
    returns("pipe", "an iterator", lambda value: is_call(value, "Words")),
    returns("pipe", "lines of bytes", lambda value: is_call(value, "lines")),
    returns("pipe", "a StreamingResponse", lambda value: is_call(value, "StreamingResponse")),
    returns("pipe", "a JSONResponse", lambda value: is_call(value, "JSONResponse")),
    returns("pipe", "a model", lambda value: is_call(value, "Completion")),
    Row("pipe yields mappings", entry("pipe", lambda m: any(is_kind(v, ast.Dict) for v in m.yielded))),
    Row("pipe yields events", entry("pipe", lambda m: any(has_key(v, "event") for v in m.yielded))),
    Row("pipe yields models", entry("pipe", lambda m: any(is_call(v, "Frame") for v in m.yielded))),
    Row(
        "pipe yields tool calls",
        entry("pipe", lambda m: m.is_generator and "'tool_calls': calls" in ast.unparse(m.node)),
    ),
    Row("pipe raises", entry("pipe", raises)),
    Row("action returns nothing", entry("action", lambda m: not m.returned)),
    returns("action", "the body", lambda value: is_kind(value, ast.Name) and ast.unparse(value) == "body"),
    returns("action", "a content", lambda value: has_key(value, "content")),
    returns("action", "messages", lambda value: has_key(value, "messages")),
    returns("action", "a page", lambda value: is_call(value, "HTMLResponse")),
    returns("action", "a tuple", lambda value: is_kind(value, ast.Tuple)),
    Row("action raises", entry("action", raises)),
    Row("tool returns nothing", entry("tool", lambda m: not m.returned)),
    returns("tool", "a text", is_text),
    returns("tool", "a mapping", lambda value: is_kind(value, ast.Dict)),
    returns("tool", "a list", lambda value: is_kind(value, ast.List)),
    returns("tool", "a tuple", lambda value: is_kind(value, ast.Tuple)),
    returns(
        "tool", "a page", lambda value: is_call(value, "HTMLResponse") and "inline" in ast.unparse(value)
    ),
    returns(
        "tool",
        "the source of a page",
        lambda value: is_call(value, "HTMLResponse") and "inline" not in ast.unparse(value),
    ),
]

SETTING_ROWS = [
    *each(
        "valve of",
        ("Literal", "EncryptedStr", "Optional", "List", "bool", "int", "float", "str"),
        lambda source, word: word in _fields(source),
    ),
    *each(
        "valve with",
        ("default", "description", "title", "ge", "le", "json_schema_extra", "default_factory"),
        lambda source, word: word in keywords(source.inner("Valves")),
    ),
    *each(
        "valves with",
        ("validator", "field_validator", "model_validator"),
        lambda source, word: word in decorated(source.inner("Valves")),
    ),
    says("options by a method", "'type': 'select'", "'options': 'region_options'"),
    says("masked valve", "class Valves", "'type': 'password'"),
    says("enum in the schema of a valve", "class Valves", "'enum':"),
    says("model_config of valves", "class Valves", "model_config"),
    says("valves with a base of their own", "class Valves(BaseValves)"),
    says("a type with a core schema", "__get_pydantic_core_schema__", "os.getenv('WEBUI_SECRET_KEY'"),
    Row("user valves", lambda source: source.inner("UserValves")),
    says("user valves by attribute", "valves = __user__['valves']", "valves.tone"),
    says("user valves by dict()", "dict(valves)"),
    says("user valves by getattr", "getattr(valves"),
    says("user valves by .get", "__user__.get('valves'"),
    says("user valves by model_validate", "UserValves.model_validate(valves)"),
    says("user valves made again", "self.UserValves(**"),
    Row("user valves of a tool", lambda source: source.kind == "tool" and source.inner("UserValves")),
    *each("hook", HOOKS, lambda source, hook: hook in source.methods),
]

HABIT_ROWS = [
    Row("reads the closure of the emitter", lambda source: "__closure__" in source.names),
    Row("asyncio.run in plain code", lambda source: _calls_in(source, "asyncio.run", is_async=False)),
    Row("requests in plain code", lambda source: _calls_in(source, "requests.get", is_async=False)),
    Row("requests in asynchronous code", lambda source: _calls_in(source, "requests.get", is_async=True)),
    says("tasks in __init__", "asyncio.create_task", method="__init__"),
    Row("tasks after the return", lambda source: any(map(_goes_on, source.entries))),
    imports("postponed annotations", "__future__", "at top"),
    imports("names for type checkers alone", "utils._typing", "for types"),
    says("annotations that name nothing", "user: Unknown"),
    says("__file__ at construction", "__file__", method="__init__"),
    Row("the module's __doc__", lambda source: "__doc__" in source.names),
    Row("the module's __name__", lambda source: "__name__" in source.names),
    Row("logging.basicConfig at import", _sets_up_logging),
    Row("print", lambda source: "print" in source.calls),
    *(imports(f"old import of {name}", name, "at top") for name in ("utils.", "apps.", "config")),
    imports("guarded import of the host", "open_webui.", "guarded"),
    imports("guarded import of a package", "package_that_nobody_has", "guarded"),
    imports("lazy import of the host", "open_webui.", "function"),
    imports("a name that the host lacks", "open_webui.models.channels_of_tomorrow", "at top"),
    says("a look-up that is not awaited", "= Users.get_user_by_id"),
    says("a look-up that is awaited", "await Users.get_user_by_id"),
    Row("asks another model", lambda source: "generate_chat_completion" in source.calls),
    Row("reads a streamed answer", lambda source: "body_iterator" in source.names),
    Row("sets valves of others", lambda source: "Functions.update_function_valves_by_id" in source.calls),
    imports("names of the web framework", "fastapi", "at top"),
    Row("state on the instance", _counts),
    Row("**kwargs", lambda source: any(method.has_keywords for method in source.entries)),
    Row("a parameter nobody knows", entry("filter", lambda method: "response" in method.parameters)),
    Row("the parameter user", lambda source: any("user" in method.parameters for method in source.entries)),
    says("the tools of the request", "tool['callable']"),
    says("tasks of the gateway", "if __task__"),
    header("requirements", "requirements"),
    header("required version of the host", "required_open_webui_version"),
]

EVENT_ROWS = [
    *each(
        "event",
        [name for row in EVENT_TYPES for name in row.names if name not in OWN_EVENTS],
        lambda source, name: name in source.events,
    ),
    Row("event of an own type", lambda source: "terminal:write" in source.events),
    Row("event without a type", lambda source: "" in source.events),
    Row("empty event", lambda source: "{}" in source.events and "EVENTS" in source.set_in_module),
    *each("emitter of a", KIND_NAMES, lambda source, kind: source.kind == kind and _emits(source)),
    *each(
        "call of a",
        KIND_NAMES,
        lambda source, kind: source.kind == kind and "__event_call__" in source.calls,
    ),
]

ROWS = [*parameter_rows(), *KIND_ROWS, *RESULT_ROWS, *SETTING_ROWS, *HABIT_ROWS, *EVENT_ROWS]

BAD_ROWS = (
    "raises_at_import",
    "raises_at_construction",
    "syntax_error",
    "spins_at_load",
    "blocks_its_loop",
    "never_returns",
    "never_returns_plainly",
    "emits_nonsense",
    "pipelines_server",
    "exits_at_load",
    "exits",
    "recursion",
    "prints_a_lot",
    "returns_objects",
)


def test_there_are_plugins_enough() -> None:
    assert len(GOOD) >= 40
    assert {source.kind for source in GOOD} == {"pipe", "filter", "action", "tool"}


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_corpus_has_an_example(row: Row) -> None:
    assert uncovered([row], GOOD) == []


def test_no_habit_is_found_where_there_is_none(tmp_path: Path) -> None:
    plain = {
        "pipe": "class Pipe:\n    pass\n",
        "filter": "class Filter:\n    pass\n",
        "action": "class Action:\n    pass\n",
        "tool": "class Tools:\n    pass\n",
    }
    for name, content in plain.items():
        (tmp_path / f"{name}.py").write_text(content)
    sources = [Source(path) for path in sorted(tmp_path.glob("*.py"))]
    assert uncovered(ROWS, sources) == [row.name for row in ROWS]


def test_the_rows_are_different() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))


def test_bad_ones_of_every_sort_are_there() -> None:
    assert set(BAD_ROWS) <= set(FAULTY)
