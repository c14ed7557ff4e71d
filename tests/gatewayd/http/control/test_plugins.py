"""`/v1/plugins`."""

import logging

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.wire.plugins import NewPlugin, PluginChange, PluginSource
from gatewayd.plugins.records import Family
from gatewayd.plugins.source import LARGEST_SOURCE
from tests.fakes.control import Control
from tests.fakes.control_documents import boss, refused
from tests.fakes.control_plugins import BROKEN, FILTER, TOOL

FUNCTION, TOOLS = "function", "tool"


@pytest.fixture(autouse=True)
async def owner(control: Control) -> None:
    await boss(control)


async def test_a_function_comes_and_goes(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client, call = control.client, control.call
    with caplog.at_level(logging.INFO, "gatewayd.audit"):
        made = await call(client.install_plugin, FUNCTION, "Loud", NewPlugin(content=FILTER))
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
    again = await call(client.install_plugin, FUNCTION, "loud", NewPlugin(content=FILTER, is_active=True))
    assert (again.outcome, again.is_active, again.content) == ("changed", True, None)
    shown = await call(client.get_plugin, FUNCTION, "LOUD", source=True)
    assert (shown.content, shown.problem) == (FILTER, None)
    gone = await call(client.remove_plugin, FUNCTION, "loud")
    assert (gone.outcome, gone.id) == ("removed", "loud")
    assert (await refused(control, client.get_plugin, FUNCTION, "loud")).kind == "not_found"


async def test_a_source_is_as_large_as_over_http(control: Control) -> None:
    large = f"{FILTER}\n# {'x' * 2**20}\n"
    made = await control.call(control.client.install_plugin, FUNCTION, "loud", NewPlugin(content=large))
    assert made.outcome == "created"
    over = NewPlugin(content="#" * LARGEST_SOURCE)
    assert (await refused(control, control.client.install_plugin, FUNCTION, "loud", over)).kind == "too_large"


async def test_lists_are_of_one_family_and_kind(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.install_plugin, FUNCTION, "loud", NewPlugin(content=FILTER))
    await call(client.install_plugin, TOOLS, "weather", NewPlugin(content=TOOL))
    listed = (await call(client.list_plugins, TOOLS)).plugins
    assert [(one.id, one.methods, one.is_active) for one in listed] == [("weather", ["forecast"], True)]
    assert [one.id for one in (await call(client.list_plugins, FUNCTION, "filter")).plugins] == ["loud"]
    assert (await call(client.list_plugins, FUNCTION, "pipe")).plugins == []
    assert (await refused(control, client.list_plugins, FUNCTION, "x")).param == "kind"
    assert (await refused(control, client.list_plugins, "x")).param == "family"


async def test_the_owner_of_a_tool_is_chosen(control: Control) -> None:
    ann = await control.accounts.add_user("ann")
    request = NewPlugin(content=TOOL, user=ann.email)
    made = await control.call(control.client.install_plugin, TOOLS, "weather", request)
    assert (made.user_id, made.user) == (ann.id, ann.email)
    nobody = NewPlugin(content=TOOL, user="zoe@example.org")
    assert (await refused(control, control.client.install_plugin, TOOLS, "other", nobody)).kind == "not_found"


async def test_dry_runs_keep_nothing(control: Control) -> None:
    client, call = control.client, control.call
    made = await call(client.install_plugin, FUNCTION, "loud", NewPlugin(content=FILTER), dry_run=True)
    assert (made.outcome, made.dry_run, made.id) == ("created", True, "loud")
    assert (await call(client.list_plugins, FUNCTION)).plugins == []
    await call(client.install_plugin, FUNCTION, "loud", NewPlugin(content=FILTER))
    on = await call(client.change_plugin, FUNCTION, "loud", PluginChange(is_active=True), dry_run=True)
    assert (on.outcome, on.is_active) == ("changed", True)
    gone = await call(client.remove_plugin, FUNCTION, "loud", dry_run=True)
    assert (gone.outcome, gone.dry_run) == ("removed", True)
    assert (await call(client.get_plugin, FUNCTION, "loud")).is_active is False


async def test_switching(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.install_plugin, FUNCTION, "loud", NewPlugin(content=FILTER))
    on = await call(client.change_plugin, FUNCTION, "loud", PluginChange(is_active=True, is_global=True))
    assert (on.outcome, on.is_active, on.is_global) == ("changed", True, True)
    same = await call(client.change_plugin, FUNCTION, "loud", PluginChange(is_active=True))
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
async def test_what_is_not_installed(
    control: Control, family: str, plugin_id: str, content: str, sentence: str
) -> None:
    for dry_run in (False, True):
        failure = await refused(
            control,
            control.client.install_plugin,
            family,
            plugin_id,
            NewPlugin(content=content),
            dry_run=dry_run,
        )
        assert (failure.kind, sentence in failure.message) == ("invalid_request", True)


async def test_files_are_read_again(control: Control) -> None:
    client, call = control.client, control.call
    (control.plugins.directory / "loud.py").write_text(FILTER)
    (control.plugins.directory / "bad.py").write_text("x = 1\n")
    done = await call(client.reload_plugins)
    assert (done.loaded, done.removed) == (["filter loud"], [])
    assert list(done.failed) == [str(control.plugins.directory / "bad.py")]
    shown = await call(client.get_plugin, FUNCTION, "loud")
    assert (shown.origin, shown.path) == ("file", str(control.plugins.directory / "loud.py"))
    for dry_run in (True, False):
        failure = await refused(control, client.remove_plugin, FUNCTION, "loud", dry_run=dry_run)
        assert (failure.kind, "it comes from the file" in failure.message) == ("conflict", True)


async def test_a_stored_one_that_fails_shows_why(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.install_plugin, FUNCTION, "loud", NewPlugin(content=FILTER))
    (control.plugins.directory / "broken.py").write_text(BROKEN)
    await call(client.reload_plugins)
    shown = await call(client.get_plugin, FUNCTION, "broken")
    assert (shown.problem.doing, "ZeroDivisionError" in shown.problem.sentence) == ("load", True)


async def test_a_check_keeps_nothing(control: Control) -> None:
    client, call = control.client, control.call
    report = await call(client.check_plugin, FUNCTION, PluginSource(id="loud", content=FILTER))
    assert (report.loads, report.kind, report.error) == (True, "filter", None)
    assert [valve.name for valve in report.valves] == ["priority", "words", "api_key", "mark"]
    assert [(event.type, event.known) for event in report.events] == [("status", True)]
    assert report.methods[0].parameters[0].model_dump() == {"name": "body", "required": True}
    bad = await call(client.check_plugin, FUNCTION, PluginSource(id="loud", content=TOOL))
    assert (bad.loads, "it is a tool" in (bad.error or "")) == (False, True)
    assert control.plugins.plugged.registry.find(Family.FUNCTION, "loud") is None


async def test_nobody_unknown_is_changed(control: Control) -> None:
    client = control.client
    for method, arguments in (
        (client.get_plugin, ()),
        (client.change_plugin, (PluginChange(is_active=True),)),
        (client.remove_plugin, ()),
    ):
        with pytest.raises(CommandError) as caught:
            await control.call(method, FUNCTION, "none", *arguments)
        assert caught.value.kind == "not_found"
