"""How plugins and checks are shown."""

from gatewayd.catalog.records import Grant
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.plugins.serializers import PluginViews, render_report, render_valves
from gatewayd.plugins.placement import PluginPlaces
from gatewayd.plugins.records import PluginProblem
from gatewayd.plugins.source.check_report import (
    MissingImport,
    ReportedMethod,
    ReportedParameter,
    ReportedRequirement,
    SourceCheckReport,
)
from gatewayd.plugins.valve_rows import ListedValve
from tests.fakes.daemons.control_plugins import TOOL
from tests.fakes.daemons.control_socket import Control
from tests.fakes.plugins.memory import plugin_of


async def test_a_plugin_with_everything(control: Control) -> None:
    accounts = control.accounts
    lists = AccessLists(accounts.users, accounts.groups)
    registry = control.plugins.plugged.registry
    places = PluginPlaces(registry)
    views = PluginViews(registry, places, GranteeFinder(accounts.users, accounts.groups), lists)
    ann = await accounts.add_user("ann")
    plugin = plugin_of(
        "weather",
        TOOL,
        user_id=ann.id,
        specs=[{"name": "forecast"}],
        missing=("open_webui.x.Y",),
        problem=PluginProblem(1_700_000_000, "inlet", "no"),
        grants=(Grant("user", "*", "read"),),
        updated_at=1,
    )
    shown = await views.plugin(plugin)
    assert (shown.family, shown.kind, shown.user, shown.methods) == ("tool", "tool", ann.email, ["forecast"])
    assert (shown.missing, shown.left_behind, shown.content) == (["open_webui.x.Y"], 0, None)
    assert (shown.isolation, shown.pid, shown.memory) == ("thread", None, None)
    assert shown.problem is not None
    assert shown.problem.model_dump() == {
        "at": "2023-11-14T22:13:20Z",
        "doing": "inlet",
        "sentence": "no",
    }
    assert [one.principal for one in shown.grants] == ["*"]
    assert (shown.updated_at, shown.created_at) == ("1970-01-01T00:00:01Z", None)
    assert (await views.plugin(plugin, with_source=True)).content == plugin.content


def test_secrets_are_masked_unless_revealed() -> None:
    row = ListedValve("key", "hush", default="old", is_set=True, is_secret=True)
    [shown] = render_valves([row])
    assert (shown.value, shown.default) == ("********", "********")
    [shown] = render_valves([row], reveal=True)
    assert (shown.value, shown.default) == ("hush", "old")


def test_a_report() -> None:
    report = SourceCheckReport(
        id="a",
        kind="pipe",
        methods=(ReportedMethod("pipe", (ReportedParameter("body", True),)),),
        missing=(MissingImport("x", guarded=True, requirement="x-package"),),
        valves={"properties": {"limit": {"type": "integer", "default": 5}}},
        requirements=(ReportedRequirement("y", None),),
        problems=("p",),
    )
    shown = render_report(report)
    assert (shown.loads, shown.kind, shown.problems) == (True, "pipe", ["p"])
    assert shown.methods[0].parameters[0].name == "body"
    assert shown.missing[0].requirement == "x-package"
    assert (shown.missing[0].guarded, shown.requirements[0].version) == (True, None)
    assert [(one.name, one.default) for one in shown.valves] == [("limit", 5)]
    assert render_report(SourceCheckReport(id="a", error="no")).loads is False
