"""Serializers of plugins, valves and source checks for the control protocol."""

from collections.abc import Sequence

from gatewayctl.wire import plugins as wire
from gatewayctl.wire.base import Outcome
from gatewayd.http.control.accounts.access_lists import AccessLists
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.transactions import timestamp
from gatewayd.plugins import valve_rows
from gatewayd.plugins.placement import PluginPlaces
from gatewayd.plugins.records import Plugin, PluginProblem
from gatewayd.plugins.registry import PluginManager
from gatewayd.plugins.source import frontmatter
from gatewayd.plugins.source.check_report import SourceCheckReport
from gatewayd.plugins.valve_rows import ListedValve


class PluginViews:
    """Serializer of plugins with the names of their owners and grantees, and with their paths."""

    def __init__(
        self, registry: PluginManager, places: PluginPlaces, principals: GranteeFinder, lists: AccessLists
    ) -> None:
        self._registry = registry
        self._places = places
        self._principals = principals
        self._lists = lists

    async def plugins(self, found: Sequence[Plugin]) -> list[wire.Plugin]:
        """Return plugins without their sources."""
        owners = await self._principals.emails(plugin.user_id for plugin in found)
        return [await self._show(plugin, owners[plugin.user_id]) for plugin in found]

    async def plugin(self, plugin: Plugin, *, with_source: bool = False) -> wire.Plugin:
        """Return one plugin."""
        shown = (await self.plugins([plugin]))[0]
        return shown.model_copy(update={"content": plugin.content}) if with_source else shown

    async def written(self, plugin: Plugin, outcome: Outcome, *, dry_run: bool) -> wire.PluginWritten:
        """Return a plugin after a write."""
        shown = await self.plugin(plugin)
        return wire.PluginWritten(**shown.model_dump(), outcome=outcome, dry_run=dry_run)

    async def _show(self, plugin: Plugin, owner: str) -> wire.Plugin:
        place = self._places.of(plugin)
        return wire.Plugin(
            id=plugin.id,
            family=plugin.family.value,
            kind=plugin.kind.value,
            name=plugin.name,
            description=plugin.description,
            version=plugin.manifest.get("version", ""),
            user_id=plugin.user_id,
            user=owner,
            is_active=plugin.is_active,
            is_global=plugin.is_global,
            origin=plugin.origin.value,
            path=plugin.path,
            requirements=list(frontmatter.read_requirements(plugin.manifest)),
            methods=[str(spec.get("name")) for spec in plugin.specs],
            missing=list(plugin.missing),
            problem=_problem(plugin.problem),
            left_behind=self._registry.left_behind(plugin.family, plugin.id),
            isolation="" if place.mode is None else place.mode.value,
            pid=place.pid,
            memory=place.memory,
            grants=await self._lists.show(plugin.grants),
            updated_at=timestamp(plugin.updated_at),
            created_at=timestamp(plugin.created_at),
        )


def render_valves(rows: Sequence[ListedValve], *, reveal: bool = False) -> list[wire.Valve]:
    """Return valves as wire models; secrets are masked unless `reveal` is set."""
    return [_valve(row, reveal=reveal) for row in rows]


def render_report(report: SourceCheckReport) -> wire.PluginReport:
    """Return the result of a source check as its wire model."""
    return wire.PluginReport(
        id=report.id,
        family=report.family,
        kind=report.kind,
        name=report.name,
        version=report.version,
        loads=report.loads,
        error=report.error,
        methods=[
            wire.Method(
                name=method.name,
                parameters=[
                    wire.Parameter(name=one.name, required=one.required) for one in method.parameters
                ],
            )
            for method in report.methods
        ],
        missing=[
            wire.MissingImport(name=one.name, guarded=one.guarded, requirement=one.requirement)
            for one in report.missing
        ],
        events=[wire.SentEvent(type=one.type, known=one.known) for one in report.events],
        valves=render_valves(valve_rows.list_valves(report.valves, {})),
        user_valves=render_valves(valve_rows.list_valves(report.user_valves, {})),
        requirements=[
            wire.Requirement(requirement=one.requirement, version=one.version) for one in report.requirements
        ],
        problems=list(report.problems),
    )


def _valve(row: ListedValve, *, reveal: bool) -> wire.Valve:
    is_masked = row.is_secret and not reveal
    return wire.Valve(
        name=row.name,
        value=valve_rows.mask_secret(row.value) if is_masked else row.value,
        default=valve_rows.mask_secret(row.default) if is_masked else row.default,
        is_set=row.is_set,
        type=row.type,
        description=row.description,
        required=row.is_required,
        secret=row.is_secret,
        known=row.is_known,
    )


def _problem(problem: PluginProblem | None) -> wire.PluginProblem | None:
    if problem is None:
        return None
    return wire.PluginProblem(at=timestamp(problem.at), doing=problem.doing, sentence=problem.sentence)
