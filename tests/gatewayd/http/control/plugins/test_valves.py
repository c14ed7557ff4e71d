"""`/v1/plugins/{family}/{id}/valves`."""

import logging

import pytest

from gatewayctl.wire import routes
from gatewayctl.wire.plugins import NewPlugin, ValveChange
from gatewayd.plugins.records import PluginFamily
from tests.fakes.daemons.control_documents import boss, refused
from tests.fakes.daemons.control_plugins import BROKEN, FILTER
from tests.fakes.daemons.control_socket import Control

LOUD = ("function", "loud")


@pytest.fixture(autouse=True)
async def loud(control: Control) -> None:
    await boss(control)
    await control.call(control.client.call, routes.INSTALL_PLUGIN, *LOUD, body=NewPlugin(content=FILTER))


async def test_values_are_set_shown_and_unset(control: Control, caplog: pytest.LogCaptureFixture) -> None:
    client, call = control.client, control.call
    change = ValveChange(values={"mark": "?"}, texts={"priority": "5", "words": '["x"]', "api_key": "hush"})
    with caplog.at_level(logging.INFO):
        done = await call(client.call, routes.SET_VALVES, *LOUD, body=change)
    assert "hush" not in caplog.text
    assert (done.outcome, {one.name: one.value for one in done.valves}) == (
        "changed",
        {"priority": 5, "words": ["x"], "api_key": "********", "mark": "?"},
    )
    shown = await call(client.call, routes.GET_VALVES, *LOUD)
    by_name = {one.name: one for one in shown.valves}
    assert (by_name["api_key"].value, by_name["api_key"].secret) == ("********", True)
    assert by_name["mark"].description == "What is put behind it."
    assert list(shown.fields["properties"]) == ["priority", "words", "api_key", "mark"]
    revealed = {
        one.name: one.value for one in (await call(client.call, routes.GET_VALVES, *LOUD, reveal=True)).valves
    }
    assert revealed["api_key"] == "hush"
    same = await call(client.call, routes.SET_VALVES, *LOUD, body=ValveChange(values={"mark": "?"}))
    assert same.outcome == "unchanged"
    unset = await call(client.call, routes.SET_VALVES, *LOUD, body=ValveChange(unset=["mark", "api_key"]))
    values = {one.name: (one.value, one.is_set) for one in unset.valves}
    assert (values["mark"], values["api_key"], values["priority"]) == (("!", False), ("", False), (5, True))


async def test_a_dry_run_sets_nothing(control: Control) -> None:
    done = await control.call(
        control.client.call, routes.SET_VALVES, *LOUD, body=ValveChange(texts={"priority": "5"}), dry_run=True
    )
    assert (done.outcome, done.dry_run, done.valves[0].value) == ("changed", True, 5)
    shown = await control.call(control.client.call, routes.GET_VALVES, *LOUD)
    assert shown.valves[0].is_set is False


@pytest.mark.parametrize(
    ("change", "param"),
    [
        (ValveChange(texts={"priority": "many"}), "priority"),
        (ValveChange(texts={"words": "x"}), "words"),
        (ValveChange(texts={"marks": "x"}), "marks"),
        (ValveChange(values={"marks": "x"}), "marks"),
        (ValveChange(unset=["marks"]), "marks"),
    ],
)
async def test_what_does_not_fit_changes_nothing(control: Control, change: ValveChange, param: str) -> None:
    for dry_run in (True, False):
        failure = await refused(
            control, control.client.call, routes.SET_VALVES, *LOUD, body=change, dry_run=dry_run
        )
        assert (failure.kind, failure.param) == ("invalid_request", param)
    assert not any(
        one.is_set for one in (await control.call(control.client.call, routes.GET_VALVES, *LOUD)).valves
    )


async def test_one_that_does_not_load_shows_what_is_stored_masked(control: Control) -> None:
    client, call = control.client, control.call
    await call(client.call, routes.SET_VALVES, *LOUD, body=ValveChange(values={"mark": "?", "priority": 3}))
    plugged = control.plugins.plugged
    stored = plugged.store.rows[PluginFamily.FUNCTION, "loud"]
    plugged.store.rows[PluginFamily.FUNCTION, "loud"] = type(stored)(
        **{**{name: getattr(stored, name) for name in stored.__slots__}, "content": BROKEN}
    )
    await call(client.call, routes.RELOAD_PLUGINS)
    shown = await call(client.call, routes.GET_VALVES, *LOUD)
    assert {one.name: one.value for one in shown.valves} == {"mark": "********", "priority": "********"}
    assert (shown.fields, "ZeroDivisionError" in shown.problem) == (None, True)
    assert (
        await refused(control, client.call, routes.SET_VALVES, *LOUD, body=ValveChange(unset=["mark"]))
    ).kind == "plugin_failed"


async def test_one_without_valves(control: Control) -> None:
    client = control.client
    plain = "class Filter:\n    def inlet(self, body): return body\n"
    await control.call(client.call, routes.INSTALL_PLUGIN, "function", "plain", body=NewPlugin(content=plain))
    assert (await control.call(client.call, routes.GET_VALVES, "function", "plain")).valves == []
    failure = await refused(
        control, client.call, routes.SET_VALVES, "function", "plain", body=ValveChange(values={"a": 1})
    )
    assert "it has none" in failure.message
    assert (await refused(control, client.call, routes.GET_VALVES, "function", "none")).kind == "not_found"
