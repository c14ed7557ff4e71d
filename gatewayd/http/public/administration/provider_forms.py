"""Routes of `/openai` and `/ollama` that configure and test providers, for administrators."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Protocol

from aiohttp import web

from gatewayd.catalog.providers.forms import named, options_name, read_form, read_provider, render_form
from gatewayd.catalog.providers.records import ManagedProvider, ProviderFamily, ProviderForm
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.errors import invalid
from gatewayd.http.audit import note_change
from gatewayd.http.body import json_reply, read_object
from gatewayd.http.context import actor
from gatewayd.http.daemon_state import SourceStates
from gatewayd.http.reply_schemas import administration
from gatewayd.http.routes import Handler, Route, RouteAccess
from gatewayd.http.schemas import answers, either

TAG: Final = "providers"


class ListedSources(SourceStates, Protocol):
    """The sources with their models; implemented by the catalogue."""

    async def list_all(self) -> Sequence[object]:
        """Return all models, after a short wait for sources that have not answered yet."""
        ...


class ProviderFormRoutes:
    """Routes that show, replace and test the providers of each family."""

    def __init__(self, providers: ManagedProviders, sources: ListedSources) -> None:
        self._providers = providers
        self._sources = sources

    def routes(self) -> Sequence[Route]:
        """Return the rows."""
        openai, ollama = ProviderFamily.OPENAI, ProviderFamily.OLLAMA
        return [
            *_rows("/openai", openai, self, "providers", "a provider"),
            *_rows("/ollama", ollama, self, "runtimes", "a runtime"),
        ]

    @answers(either(administration.openai_form, administration.ollama_form))
    async def show(self, family: ProviderFamily, request: web.Request) -> web.StreamResponse:
        """Answer the addresses, keys and options of the family.

        Keys are masked. The options of each entry have `locked_by`, the place in the settings that it comes
        from, `models`, the number of its models, and `problem`, the reason of the last failure. `revision` is
        for a change.
        """
        return self._render(self._providers.show(family))

    @answers(either(administration.openai_form, administration.ollama_form))
    async def replace(self, family: ProviderFamily, request: web.Request) -> web.StreamResponse:
        """The body of the reply -> the family with its new providers, which are used at once.

        New providers have up to two seconds to list their models, so that the reply tells whether they work.

        A masked key keeps the stored one, unless the host is new. Providers of the settings may be left out,
        and cannot be changed (409). With `revision`, a change since then is a 409.
        """
        form = read_form(family, await read_object(request))
        changed = await self._providers.replace(form, by=actor(request).user_id)
        own = [each for each in changed.providers if not each.origin]
        note_change(
            request,
            f"providers of {family.value}",
            {
                "enabled": changed.enabled,
                "providers": [{"name": each.name, "url": each.base_url} for each in own],
            },
        )
        await self._sources.list_all()
        return self._render(changed)

    @answers(administration.provider_offer)
    async def verify(self, family: ProviderFamily, request: web.Request) -> web.StreamResponse:
        """`{"url", "key"?, "config"?}`: request the models of a provider now; it need not be stored.

        Answers `{"object": "list", "data": [{"id", ...}]}`, of a runtime also with `version`. A masked key
        is that of the provider with the `config.id` or the address. Errors tell what failed.
        """
        provider = _tested(family, await read_object(request))
        offer = await self._providers.test(provider)
        listed = [{"id": each, "object": "model", "owned_by": provider.kind} for each in offer.models]
        shown: dict[str, Any] = {"object": "list", "data": listed}
        return json_reply(shown if offer.version is None else {**shown, "version": offer.version})

    def _render(self, form: ProviderForm) -> web.Response:
        states = {str(each["name"]): each for each in self._sources.source_states()}
        return json_reply(render_form(form, states, self._providers.problems()))


def _rows(
    prefix: str, family: ProviderFamily, owner: ProviderFormRoutes, nouns: str, noun: str
) -> Sequence[Route]:
    def row(method: str, path: str, handler: Handler, summary: str, *, asks: bool = False) -> Route:
        return Route(
            method, prefix + path, handler, RouteAccess.ADMIN, summary, tag=TAG, asks=asks, interruptible=asks
        )

    return [
        row("GET", "/config", partial(owner.show, family), f"Show the {nouns}"),
        row("POST", "/config/update", partial(owner.replace, family), f"Replace the {nouns}"),
        row("POST", "/verify", partial(owner.verify, family), f"Test {noun}", asks=True),
    ]


def _tested(family: ProviderFamily, sent: dict[str, Any]) -> ManagedProvider:
    url, key, config = sent.get("url"), sent.get("key"), sent.get("config")
    if not isinstance(url, str):
        raise invalid("cannot accept url: expected text", param="url")
    if key is not None and not isinstance(key, str):
        raise invalid("cannot accept key: expected text", param="key")
    if config is not None and not isinstance(config, dict):
        raise invalid(
            f"cannot accept config: expected an object as in {options_name(family)}", param="config"
        )
    return named(read_provider(family, url, key, config or {}))
