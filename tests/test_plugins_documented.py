"""gatewayd-plugins(7) is complete and true: its examples run, its tables are those of the code."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gatewayctl.main import app
from gatewayd.accounts.permissions import BUILTIN_PERMISSIONS
from gatewayd.assembly import plugin_host as assembly_host
from gatewayd.assembly import plugins as assembly
from gatewayd.chats.json_limits import MAX_MEMBER_VALUES, MAX_TEXT_CHARACTERS
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS, MAX_ITEMS, MAX_ITEMS_BYTES
from gatewayd.events import calls, tickets
from gatewayd.events.event_types import EVENT_TYPES, UNSTORED_PREFIX
from gatewayd.events.records import Effect, EventHelper
from gatewayd.http.public.plugins.functions import MAX_SYNC_BYTES
from gatewayd.http.public.plugins.tool_servers import MAX_BODY_BYTES, MAX_SERVERS
from gatewayd.http.socketio.sessions import PATH as SOCKET_PATH
from gatewayd.pipeline.documents.plugin_context import OWN_FIELDS
from gatewayd.pipeline.filters import chain as filters_chain
from gatewayd.pipeline.functions import pipe_source as functions_source
from gatewayd.pipeline.records import Endpoint
from gatewayd.pipeline.tools import toolbox
from gatewayd.plugins.builtin import extractive, rate_limit, redact
from gatewayd.plugins.directory import read_builtin
from gatewayd.plugins.inline import methods, translation
from gatewayd.plugins.inline import operations as inline
from gatewayd.plugins.isolation import memory, messages, process, read_ahead
from gatewayd.plugins.open_webui.manifest import MODULES, PACKAGE
from gatewayd.plugins.records import PluginKind
from gatewayd.plugins.runtime import arguments, call_depth, invoke, loader, output, repeated_calls, runner
from gatewayd.plugins.runtime.iterators import PluginIterator
from gatewayd.plugins.servers.config import read_connections
from gatewayd.plugins.source import code as source_code
from gatewayd.plugins.source import frontmatter
from gatewayd.settings import definitions
from gatewayd.upstream.tools import mcp_session, mcp_tools, openapi_operations, openapi_tools
from gatewayd.upstream.tools import requests as tools_requests
from gatewayd.upstream.tools.identity import OTHER_NAMES
from gatewayd.workers import MAX_READING_SECONDS
from tests.fakes.plugins.memory import NotedEvents, make_registry, plugin_of, scope_of
from tests.suite.manual_tables import rows, unescaped

TOP = Path(__file__).parents[1]
PAGE = (TOP / "man" / "gatewayd-plugins.7").read_text()


def between(kind: str, name: str) -> str:
    found = re.search(rf'(?s)^\.\\" begin {kind}{name}\n(.*?)^\.\\" end {kind}{name}$', PAGE, re.MULTILINE)
    assert found, f"the page has no {kind}{name}"
    return found[1]


def items(name: str) -> dict[str, str]:
    """Return the source of each item of a list by its head."""
    parts = re.split(r"(?m)^\.It (\S+)$", between("", name))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


# What a plugin is -----------------------------------------------------------------------------------------


def test_every_class_has_its_row() -> None:
    told = [(family, name, kind) for family, name, kind, _ in rows(PAGE, "kinds")]
    assert told == [
        (family.value, name, kind.value)
        for family, found in source_code.CLASSES.items()
        for name, kind in found
    ]


def test_every_reserved_parameter_has_its_item() -> None:
    made = arguments.ARGUMENT_MAKERS
    assert set(items("parameters")) == {*made, "__valves__"}
    assert len(items("parameters")) == len(made) + 1


def test_what_small_methods_may_call_is_told() -> None:
    texts = sorted(inline.TEXT_METHODS)
    assert [words.split() for _, words in rows(PAGE, "inline")] == [
        sorted({*inline.BUILTINS, "isinstance"}),
        sorted(inline.METHODS - set(texts)),
        sorted(translation.ADDITIONS),
        texts,
    ]
    assert repeated_calls.MAX_ABANDONED_RUNS == 3
    assert "After three chunks in a row" in PAGE


def test_every_endpoint_that_filters_are_told_has_its_row() -> None:
    assert [name for name, _ in rows(PAGE, "endpoints")] == [endpoint.value for endpoint in Endpoint]


def used_attributes() -> set[str]:
    """Return what the gateway asks of instances and of their hooks."""
    folders = (TOP / "gatewayd" / "pipeline", TOP / "gatewayd" / "plugins")
    sources = [path.read_text() for folder in folders for path in folder.rglob("*.py")]
    asked = re.compile(r'\.(?:value|read|flag|run_hook|has)\(\s*"(\w+)"')
    return {name for text in sources for name in asked.findall(text)}


def test_every_attribute_has_its_item() -> None:
    methods = {"pipe", "inlet", "stream", "outlet", "action", "priority", "Valves"}
    assert set(items("attributes")) == used_attributes() - methods


def test_header_keys_are_those_that_are_read() -> None:
    text = (TOP / "gatewayd" / "plugins" / "directory.py").read_text()
    for key in ("title", "description", "active", "global"):
        assert f'"{key}"' in text
    header = '"""\n' + "".join(f"{key}: yes\n" for key in items("header")) + '"""\n'
    assert set(frontmatter.parse_frontmatter(header)) == set(items("header"))
    assert frontmatter.read_requirements(frontmatter.parse_frontmatter(header)) == ("yes",)


# Examples -------------------------------------------------------------------------------------------------


def example(name: str) -> str:
    lines = between("example ", name).splitlines()
    return "\n".join(unescaped(line) for line in lines if not line.startswith((".Bd", ".Ed"))) + "\n"


async def called(name: str, method: str, **given: Any) -> tuple[Any, NotedEvents]:
    """Load an example, call a method of it, and return what came of it, items joined, and the events."""
    events = NotedEvents(answers=[True])
    async with make_registry(plugin_of("example", example(name)), events=events) as plugged:
        plugin = plugged.registry.list()[0]
        loaded = await plugged.registry.loaded(plugin.family, plugin.id)
        value = await loaded.call(method, scope_of(), given)
        return "".join([item async for item in value]) if isinstance(value, PluginIterator) else value, events


BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "id": "m1"}


async def test_the_example_of_a_pipe_runs() -> None:
    answer, events = await called("pipe", "pipe", body=BODY)
    assert answer == "U1 said: hi"
    assert events.texts() == ["Listening"]


async def test_the_example_of_a_filter_runs() -> None:
    body, _ = await called("filter", "inlet", body={"messages": [*BODY["messages"]]})
    assert [message["content"] for message in body["messages"]] == ["Be brief.", "hi"]
    assert (await called("filter", "stream", event={"x": 1}))[0] == {"x": 1}
    body, _ = await called("filter", "outlet", body={"messages": [{"role": "assistant", "content": "Yes."}]})
    assert body["messages"][0]["content"] == "Yes. (Without warranty.)"


async def test_the_example_of_an_action_runs() -> None:
    answer, events = await called("action", "action", body=BODY)
    assert answer == {"messages": [{"id": "m1", "content": "-"}]}
    assert [event["type"] for _, event in events.asked] == ["confirmation"]


async def test_the_example_of_a_tool_runs() -> None:
    assert (await called("tool", "add", a=2))[0] == 3
    async with make_registry(plugin_of("example", example("tool"))) as plugged:
        plugin = plugged.registry.list()[0]
        loaded = await plugged.registry.loaded(plugin.family, plugin.id)
        (described,) = loaded.plugin.specs
        assert described["description"] == "Add two numbers."
        assert described["parameters"]["properties"]["b"]["description"] == "the second one"


async def test_the_example_of_valves_runs() -> None:
    assert (await called("valves", "pipe", body=BODY))[0] == "You said: hi"
    assert frontmatter.parse_frontmatter(example("valves")) == {"title": "Echo", "version": "1.0"}


# Events ---------------------------------------------------------------------------------------------------

STORED = {
    Effect.NONE: "-",
    Effect.APPEND_STATUS: "statusHistory",
    Effect.APPEND_CONTENT: "content (added)",
    Effect.REPLACE_CONTENT: "content",
    Effect.APPEND_EMBEDS: "embeds",
    Effect.APPEND_FILES: "files",
    Effect.APPEND_SOURCES: "sources",
}


def test_every_event_type_has_a_true_row() -> None:
    told = [(names, stored, external) for names, _, stored, external in rows(PAGE, "events")]
    assert told == [
        (", ".join(row.names), STORED[row.effect], "yes" if row.external else "-")
        for row in EVENT_TYPES
        if row.helper is EventHelper.EMITTER
    ]
    assert [kind for kind, *_ in rows(PAGE, "calls")] == [
        row.name for row in EVENT_TYPES if row.helper is EventHelper.CALL
    ]


def test_what_an_event_must_have_stands_in_its_row() -> None:
    table = [row[:2] for row in [*rows(PAGE, "events"), *rows(PAGE, "calls")]]
    told = {name: data for names, data in table for name in names.split(", ")}
    for row in EVENT_TYPES:
        fault = row.check({})
        if fault is not None:
            assert fault.field.removeprefix("data.") in told[row.name], row.name


def test_only_names_with_the_prefix_are_not_stored() -> None:
    assert f".Li {UNSTORED_PREFIX}\nare never stored" in PAGE
    for row in EVENT_TYPES:
        for name in row.names:
            is_stored = row.effect is not Effect.NONE and not name.startswith(UNSTORED_PREFIX)
            assert (row.effect_of(name) is not Effect.NONE) == is_stored


# Import names ---------------------------------------------------------------------------------------------


def modules() -> Iterator[tuple[str, tuple[str, ...], str]]:
    for name, text in items("modules").items():
        names, _, note = text.partition(".Pp\n")
        yield f"{PACKAGE}.{name}", tuple(names.split()), note.strip()


def test_every_module_has_its_names_in_the_page() -> None:
    assert list(modules()) == [(module.name, module.names, module.note) for module in MODULES]
    with_settings = [module.name.removeprefix(f"{PACKAGE}.") for module in MODULES if module.settings]
    assert f"in\n.Li {with_settings[0]}\nand\n.Li {with_settings[1]}\nare settings" in PAGE


# Failures -------------------------------------------------------------------------------------------------


def test_every_status_of_a_refusal_is_told() -> None:
    assert sorted(map(int, re.findall(r"\d+", between("", "statuses")))) == sorted(filters_chain._KINDS)


def test_refusals_have_the_status_of_the_page() -> None:
    told = {where: status for where, status, _ in rows(PAGE, "failures")}
    refused = filters_chain.refusal(
        invoke.PluginError("filter", "f", invoke.FailureDetails("Too rude.", "ValueError"))
    )
    assert (refused.kind.value, refused.message) == ("invalid_request", "Too rude.")
    for where in ("an inlet", "an action", "an outlet of /api/chat/completed", "an installation"):
        assert told[where] == "400"
    assert told["a pipe, at once"] == told["a filter that does not load"] == "500"


# Tools outside --------------------------------------------------------------------------------------------


def test_the_example_of_servers_is_read() -> None:
    found = read_connections(example("servers"))
    assert [(server.id, server.type.value) for server in found.servers] == [
        ("weather", "openapi"),
        ("notes", "mcp"),
    ]
    assert found.problems == ()


def test_every_forwarded_header_has_a_true_row() -> None:
    told = {setting: header for header, _, setting in rows(PAGE, "headers")}
    found = definitions()
    known = {name for name in found if re.match(r"forward_(?:user|session)_info_header_", name)}
    assert set(told) == known
    assert told == {name: json.loads(found[name].default) for name in known}
    for name, other in OTHER_NAMES.items():
        assert name in told.values()
        assert f".Li {other}\n" in PAGE


# Built-in functions ---------------------------------------------------------------------------------------

BUILTINS = {
    "rate_limit": rate_limit.Filter.Valves,
    "redact": redact.Filter.Valves,
    "extractive": extractive.Pipe.Valves,
}


def test_every_built_in_function_has_its_part() -> None:
    found = {plugin.id: plugin for plugin in read_builtin()}
    assert set(found) == set(BUILTINS)
    assert not any(plugin.is_active or plugin.is_global for plugin in found.values())
    assert [found[name].kind for name in BUILTINS] == [PluginKind.FILTER, PluginKind.FILTER, PluginKind.PIPE]
    parts = re.findall(r"(?m)^\.Ss (\w+)$", PAGE.partition(".Sh BUILT-IN FUNCTIONS")[2].partition(".Sh ")[0])
    assert parts == list(BUILTINS)


@pytest.mark.parametrize("name", BUILTINS)
def test_every_valve_has_a_true_row(name: str) -> None:
    told = [(valve, default) for valve, default, _ in rows(PAGE, name)]
    defaults = {valve: field.default for valve, field in BUILTINS[name].model_fields.items()}
    shown = {
        valve: ("text" if value else "") if isinstance(value, str) else str(value)
        for valve, value in defaults.items()
    }
    assert told == list(shown.items())


def test_what_is_said_of_the_redaction_is_so() -> None:
    assert f"up to {redact.OWN_RULE_WINDOW_CHARACTERS} characters" in PAGE
    assert redact.RedactionSession().mask("a@b.de", [redact.RULES["emails"]]) == "[EMAIL_1]"
    assert ".Li [EMAIL_1]\n" in PAGE


# Limits and names -----------------------------------------------------------------------------------------

LIMITS = {
    "characters of an id": source_code.MAX_ID_CHARACTERS,
    "MiB of a source, and of a request with one": source_code.MAX_SOURCE_BYTES // 2**20,
    "MiB of a request with all functions": MAX_SYNC_BYTES // 2**20,
    "seconds for a pipe to list its models": int(functions_source.LISTING_SECONDS),
    "seconds that a request waits for a pipe to load": int(functions_source.LOADING_SECONDS),
    "MiB of a message of a process of a plugin": messages.MAX_MESSAGE_BYTES // 2**20,
    "seconds for valves and hooks": int(runner.HOOK_SECONDS),
    "seconds for the description of valves": int(runner.ACCESSOR_SECONDS),
    "characters of an exception that are stored": invoke.MAX_TEXT_CHARACTERS,
    "characters of a line that a plugin prints": output.MAX_LINE_CHARACTERS,
    "nested requests to models": call_depth.MAX_DEPTH,
    "tools that a request names": toolbox.MAX_TOOL_IDS,
    "bytes of an event for a small method": methods.MAX_VALUE_BYTES,
    "nodes of the syntax tree of a small method": translation.MAX_NODES,
    "seconds without a listener until a call fails": int(calls.GRACE_SECONDS),
    "seconds that a ticket is good for": tickets.LIFE_SECONDS,
    "characters of the content of a message": MAX_CONTENT_CHARACTERS,
    "values of a list of a message": MAX_ITEMS,
    "JSON values of an element of such a list": MAX_MEMBER_VALUES,
    "characters of a non-ASCII text in a message": MAX_TEXT_CHARACTERS,
    "bytes of a list of a message": MAX_ITEMS_BYTES,
    "tool servers of the database": MAX_SERVERS,
    "MiB of a request with tool servers": MAX_BODY_BYTES // 2**20,
    "MiB of the description of a tool server": openapi_tools.MAX_DESCRIPTION_BYTES // 2**20,
    "lists and objects of that description": openapi_tools.DESCRIPTION_LIMITS.containers,
    "values of that description": openapi_tools.DESCRIPTION_LIMITS.values,
    "functions of a tool server": openapi_operations.MAX_FUNCTIONS,
    "parameters of an OpenAPI function in path, query and headers": openapi_operations.MAX_PARAMETERS,
    "characters of the description of a function, which is cut": (
        openapi_operations.MAX_DESCRIPTION_CHARACTERS
    ),
    "pages of a list of MCP tools": mcp_session.MAX_PAGES,
    "MiB of a result of a tool server": openapi_tools.MAX_RESULT_BYTES // 2**20,
    "redirects to the same host that are followed": tools_requests.MAX_REDIRECTS,
    "sessions with MCP servers": mcp_tools.MAX_SESSIONS,
    "seconds that an MCP session is kept without a call": int(mcp_session.IDLE_SECONDS),
}


def test_every_limit_is_in_the_page() -> None:
    assert {label: int(number) for label, number in rows(PAGE, "limits")} == LIMITS
    assert f"for {calls.GRACE_SECONDS:g} seconds" in PAGE
    assert f"takes more than {runner.ACCESSOR_SECONDS:g} seconds counts as absent" in PAGE
    assert f"after {loader.MAX_IMPORT_SECONDS:g} seconds the next one" in PAGE
    assert f"read up to {read_ahead.MAX_PIECES} pieces ahead" in PAGE
    assert memory.FULL_SHARE == 9 / 10
    assert f"not within {process.MAX_ANSWER_SECONDS:g}\nseconds" in PAGE
    assert f"does not read for {MAX_READING_SECONDS:g} seconds" in PAGE
    assert mcp_session.MAX_ANSWER_BYTES == openapi_tools.MAX_RESULT_BYTES


def test_settings_and_permissions_that_the_page_names_exist() -> None:
    named = set(re.findall(r"(?m)(?:^\.| Ta )Ic ([a-z0-9_.]+)", PAGE))
    permissions = {f"{group}.{leaf}" for group, leaves in BUILTIN_PERMISSIONS.items() for leaf in leaves}
    assert len(named) > 12
    assert named <= set(definitions()) | permissions
    assert {name for _, name in rows(PAGE, "settings")} <= set(definitions())


def test_places_that_the_page_names_are_those_of_the_code() -> None:
    folder = json.loads(definitions()["plugins_dir"].default)
    assert f".Pa {folder}\n" in PAGE
    for name in (assembly.PACKAGES_FOLDER, assembly_host.PLUGIN_DATA):
        assert f".It Pa /var/lib/gatewayd/{name}\n" in PAGE
    assert f".Pa {SOCKET_PATH} .\n" in PAGE


def test_fields_of_requests_that_the_page_names_are_the_gateways() -> None:
    for name in ("filter_ids", "tool_ids", "execute_tools", "params"):
        assert name in OWN_FIELDS
        assert name in PAGE


def commands() -> dict[str, set[str]]:
    """Return the options of every command, by its words."""
    found: dict[str, set[str]] = {}

    def walk(command: Any, words: str) -> None:
        found[words] = {option for one in command.params for option in [*one.opts, *one.secondary_opts]}
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{words} {name}".strip())

    walk(typer.main.get_command(app), "")
    return found


def test_commands_that_the_page_names_exist() -> None:
    known = commands()
    lines = re.findall(r"(?m)^(?:\.Cm|#) gatewayctl (.+)$", PAGE.replace("\\-", "-"))
    assert len(lines) > 15
    for line in lines:
        words = re.match(r"[a-z-]+(?: (?:valves )?[a-z-]+)?", line)
        assert words, line
        name = words[0] if words[0] in known else words[0].split()[0]
        assert name in known, line
        assert set(re.findall(r"--[a-z-]+", line)) <= known[name], line
