"""`/v1/plugins`."""

import logging

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire import routes
from gatewayctl.wire.plugins import NewPlugin, PluginChange, PluginSource
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.source.code import MAX_SOURCE_BYTES
from tests.fakes.daemons.control_documents import boss, refused
from tests.fakes.daemons.control_plugins import BROKEN, FILTER, TOOL
from tests.fakes.daemons.control_socket import Control

FUNCTION, TOOLS = "function", "tool"


@pytest.fixture(autouse=True)
async def owner(control: Control) -> None:
    await boss(control)


async def test_a_function_comes_and_goes(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client, call = control.client, control.call
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        made = await call(
            client.call, routes.INSTALL_PLUGIN, FUNCTION, "Loud", body=NewPlugin(content=FILTER)
        )
    assert (made.outcome, made.id, made.kind, made.name, made.version) == (
        "created",
        "loud",
        "filter",
        "Loud",
        "1.2",
    )
    assert (made.user, made.is_active, made.requirements) == ("boss@example.org", False, ["pydantic"])
    assert [(line.getMessage(), vars(line)["target"]) for line in caplog.records] == [
        ("function install", "loud")
    ]
    again = await call(
        client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=FILTER, is_active=True)
    )
    assert (again.outcome, again.is_active, again.content) == ("changed", True, None)
    shown = await call(client.call, routes.GET_PLUGIN, FUNCTION, "LOUD", source=True)
    assert (shown.content, shown.problem) == (FILTER, None)
    gone = await call(client.call, routes.REMOVE_PLUGIN, FUNCTION, "loud")
    assert (gone.outcome, gone.id) == ("removed", "loud")
    assert (await refused(control, client.call, routes.GET_PLUGIN, FUNCTION, "loud")).kind == "not_found"


async def test_a_source_is_as_large_as_over_http(control: Control) -> None:
    large = f"{FILTER}\n# {'x' * 2**20}\n"
    made = await control.call(
        control.client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=large)
    )
    assert made.outcome == "created"
    over = NewPlugin(content="#" * MAX_SOURCE_BYTES)
    assert (
        await refused(control, control.client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=over)
    ).kind == "too_large"


async def test_lists_are_of_one_family_and_kind(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=FILTER))
    await call(client.call, routes.INSTALL_PLUGIN, TOOLS, "weather", body=NewPlugin(content=TOOL))
    listed = (await call(client.call, routes.LIST_PLUGINS, TOOLS)).plugins
    assert [(one.id, one.methods, one.is_active) for one in listed] == [("weather", ["forecast"], True)]
    assert [
        one.id for one in (await call(client.call, routes.LIST_PLUGINS, FUNCTION, kind="filter")).plugins
    ] == ["loud"]
    assert (await call(client.call, routes.LIST_PLUGINS, FUNCTION, kind="pipe")).plugins == []
    assert (await refused(control, client.call, routes.LIST_PLUGINS, FUNCTION, kind="x")).param == "kind"
    assert (await refused(control, client.call, routes.LIST_PLUGINS, "x")).param == "family"


async def test_the_owner_of_a_tool_is_chosen(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    request = NewPlugin(content=TOOL, user=ann.email)
    made = await control.call(control.client.call, routes.INSTALL_PLUGIN, TOOLS, "weather", body=request)
    assert (made.user_id, made.user) == (ann.id, ann.email)
    nobody = NewPlugin(content=TOOL, user="zoe@example.org")
    assert (
        await refused(control, control.client.call, routes.INSTALL_PLUGIN, TOOLS, "other", body=nobody)
    ).kind == "not_found"


@pytest.mark.process
async def test_dry_runs_keep_nothing(control: Control) -> None:
    client, call = control.client, control.call
    made = await call(
        client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=FILTER), dry_run=True
    )
    assert (made.outcome, made.dry_run, made.id) == ("created", True, "loud")
    assert (await call(client.call, routes.LIST_PLUGINS, FUNCTION)).plugins == []
    await call(client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=FILTER))
    on = await call(
        client.call, routes.CHANGE_PLUGIN, FUNCTION, "loud", body=PluginChange(is_active=True), dry_run=True
    )
    assert (on.outcome, on.is_active) == ("changed", True)
    gone = await call(client.call, routes.REMOVE_PLUGIN, FUNCTION, "loud", dry_run=True)
    assert (gone.outcome, gone.dry_run) == ("removed", True)
    assert (await call(client.call, routes.GET_PLUGIN, FUNCTION, "loud")).is_active is False


async def test_switching(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=FILTER))
    on = await call(
        client.call, routes.CHANGE_PLUGIN, FUNCTION, "loud", body=PluginChange(is_active=True, is_global=True)
    )
    assert (on.outcome, on.is_active, on.is_global) == ("changed", True, True)
    same = await call(client.call, routes.CHANGE_PLUGIN, FUNCTION, "loud", body=PluginChange(is_active=True))
    assert (same.outcome, same.is_global) == ("unchanged", True)


@pytest.mark.parametrize(
    ("family", "plugin_id", "content", "sentence"),
    [
        (FUNCTION, "loud", BROKEN, "ZeroDivisionError"),
        (FUNCTION, "loud", TOOL, "it is a tool and not a function"),
        (TOOLS, "loud", FILTER, "it is a function and not a tool"),
        (FUNCTION, "1-x", FILTER, "cannot accept id"),
        (FUNCTION, "loud", "x = (", "SyntaxError"),
    ],
)
@pytest.mark.process
async def test_what_is_not_installed(
    control: Control, family: str, plugin_id: str, content: str, sentence: str
) -> None:
    for dry_run in (False, True):
        failure = await refused(
            control,
            control.client.call,
            routes.INSTALL_PLUGIN,
            family,
            plugin_id,
            body=NewPlugin(content=content),
            dry_run=dry_run,
        )
        assert (failure.kind, sentence in failure.message) == ("invalid_request", True)


async def test_files_are_read_again(control: Control) -> None:
    client, call = control.client, control.call
    (control.plugins.directory / "loud.py").write_text(FILTER)
    (control.plugins.directory / "bad.py").write_text("x = 1\n")
    done = await call(client.call, routes.RELOAD_PLUGINS)
    assert (done.loaded, done.removed) == (["filter loud"], [])
    assert list(done.failed) == [str(control.plugins.directory / "bad.py")]
    shown = await call(client.call, routes.GET_PLUGIN, FUNCTION, "loud")
    assert (shown.origin, shown.path) == ("file", str(control.plugins.directory / "loud.py"))
    for dry_run in (True, False):
        failure = await refused(control, client.call, routes.REMOVE_PLUGIN, FUNCTION, "loud", dry_run=dry_run)
        assert (failure.kind, "it comes from the file" in failure.message) == ("conflict", True)


async def test_a_stored_one_that_fails_shows_why(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.INSTALL_PLUGIN, FUNCTION, "loud", body=NewPlugin(content=FILTER))
    (control.plugins.directory / "broken.py").write_text(BROKEN)
    await call(client.call, routes.RELOAD_PLUGINS)
    shown = await call(client.call, routes.GET_PLUGIN, FUNCTION, "broken")
    assert (shown.problem.doing, "ZeroDivisionError" in shown.problem.sentence) == ("load", True)


@pytest.mark.process
async def test_a_check_keeps_nothing(control: Control) -> None:
    client, call = control.client, control.call
    report = await call(
        client.call, routes.CHECK_PLUGIN, FUNCTION, body=PluginSource(id="loud", content=FILTER)
    )
    assert (report.loads, report.kind, report.error) == (True, "filter", None)
    assert [valve.name for valve in report.valves] == ["priority", "words", "api_key", "mark"]
    assert [(event.type, event.known) for event in report.events] == [("status", True)]
    assert report.methods[0].parameters[0].model_dump() == {"name": "body", "required": True}
    bad = await call(client.call, routes.CHECK_PLUGIN, FUNCTION, body=PluginSource(id="loud", content=TOOL))
    assert (bad.loads, "it is a tool" in (bad.error or "")) == (False, True)
    assert control.plugins.plugged.registry.find(PluginFamily.FUNCTION, "loud") is None


async def test_nobody_unknown_is_changed(control: Control) -> None:
    client = control.client
    for endpoint, body in (
        (routes.GET_PLUGIN, None),
        (routes.CHANGE_PLUGIN, PluginChange(is_active=True)),
        (routes.REMOVE_PLUGIN, None),
    ):
        with pytest.raises(CommandError) as caught:
            await control.call(client.call, endpoint, FUNCTION, "none", body=body)
        assert caught.value.kind == "not_found"
