"""Route of `/v1/providers`: the key of a model provider."""

from collections.abc import Sequence

from aiohttp import web

from gatewayctl.wire import routes
from gatewayctl.wire.base import Outcome
from gatewayctl.wire.upkeep import providers as wire
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.http.audit import note_change
from gatewayd.http.body import read_model
from gatewayd.http.control.rows import serve
from gatewayd.http.control.transactions import audit, author, control_reply, is_set
from gatewayd.http.routes import Route


class ControlProviderRoutes:
    """Route of the keys of providers on the control socket."""

    def __init__(self, providers: ManagedProviders) -> None:
        self._providers = providers

    def routes(self) -> Sequence[Route]:
        """Return the row."""
        return [serve(routes.REPLACE_PROVIDER_KEY, self.replace_key)]

    async def replace_key(self, request: web.Request) -> web.StreamResponse:
        """Take `NewProviderKey`, test it, use it at once, answer `ProviderKeyWritten`."""
        name, dry_run = request.match_info["name"], is_set(request, "dry_run")
        wanted = await read_model(request, wire.NewProviderKey)
        tested, offer = await self._providers.test_key(name, wanted.key, is_change=not dry_run)
        if not dry_run:
            await self._providers.replace_key(tested, by=author(request))
            note_change(request, name, {"url": tested.base_url})
            audit(request, "secret rotate-provider", name)
        return control_reply(
            wire.ProviderKeyWritten(
                name=name,
                base_url=tested.base_url,
                models=len(offer.models),
                not_tested=offer.key_doubt,
                outcome=Outcome.CHANGED,
                dry_run=dry_run,
            )
        )
