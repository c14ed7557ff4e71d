"""Routes of `/v1/usage` and `/v1/load`: what models are used for, and what they do now."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.consumption import usage as wire
from gatewayd.accounts.groups import Groups
from gatewayd.accounts.users import Users
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.http.control.accounts.grantees import GranteeFinder
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import control_reply
from gatewayd.http.routes import Route
from gatewayd.http.usage_fields import read_query, shown_line
from gatewayd.metering.load import QUALITIES, WINDOW_SECONDS, LoadSums, LoadWatch
from gatewayd.metering.meter import CallMeter
from gatewayd.metering.usage_records import UsageStore

MAX_LOAD_LINES = 100
"""Maximum number of lines of one snapshot."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """A queue: what works, what waits, and the maximum number that works, None without one.

    The figures are None if they are not known now.
    """

    name: str
    working: int | None
    waiting: int | None
    places: int | None = None


QueueDepths = Callable[[], Awaitable[Sequence[QueueDepth]]]
"""Returns the queues of this process and its database."""


class ControlUsageRoutes:
    """Routes of usage on the control socket."""

    def __init__(
        self,
        store: UsageStore,
        meter: CallMeter,
        load: LoadWatch,
        users: Users,
        groups: Groups,
        queues: QueueDepths,
    ) -> None:
        self._queues = queues
        self._store = store
        self._meter = meter
        self._load = load
        self._users = users
        self._groups = groups

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        return [serve(routes.REPORT_USAGE, self.report), serve(routes.SHOW_LOAD, self.snapshot)]

    async def report(self, request: web.Request) -> web.StreamResponse:
        """Answer `UsageReport`; `user` and `group` are ids or names, also ids of deleted ones."""
        query = request.query
        wanted = read_query(
            query,
            user_id=await self._user_id(query.get("user")),
            group_id=None if not query.get("group") else (await self._groups.resolve(query["group"])).id,
            key_id=query.get("key") or None,
        )
        lines = [wire.UsageLine(**shown_line(wanted, line)) for line in await self._store.report(wanted)]
        return control_reply(wire.UsageReport(lines=lines))

    async def snapshot(self, request: web.Request) -> web.StreamResponse:
        """Answer `LoadSnapshot` by `user`, `key`, `model` or `provider`."""
        quality = request.query.get("by", "model")
        if quality not in QUALITIES:
            raise invalid(f"cannot accept by: expected one of {', '.join(QUALITIES)}", param="by")
        total, found = self._load.snapshot(self._meter, quality)
        busiest = sorted(found, key=lambda name: (-found[name].requests, -found[name].finished, name))
        shown = busiest[:MAX_LOAD_LINES]
        emails = await GranteeFinder(self._users, self._groups).emails(shown) if quality == "user" else {}
        lines = [_line(emails.get(name) or name, found[name]) for name in shown]
        queues = [wire.QueueLine(**asdict(depth)) for depth in await self._queues()]
        return control_reply(wire.LoadSnapshot(total=_line("total", total), lines=lines, queues=queues))

    async def _user_id(self, ref: str | None) -> str | None:
        """Return the id of a user by id or e-mail; of one who is gone, the id itself."""
        if not ref:
            return None
        try:
            return (await self._users.resolve(ref)).id
        except GatewayError as error:
            if error.kind is not ErrorKind.NOT_FOUND or "@" in ref:
                raise
            return ref


def _line(name: str, sums: LoadSums) -> wire.LoadLine:
    return wire.LoadLine(
        name=name,
        requests=sums.requests,
        streams=sums.streams,
        waiting=sums.waiting,
        finished=sums.finished,
        failures=sums.failures,
        tokens_per_second=round(sums.tokens / WINDOW_SECONDS, 2),
        first_seconds=sums.first_seconds / sums.timed if sums.timed else None,
    )
