"""Provisioning over the account services: the SCIM token, the services, and what they saw."""

import asyncio
import importlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from gatewayd.assembly.accounts import Accounts
from gatewayd.scim.activity import Activity
from gatewayd.scim.groups import ProvisionedGroups
from gatewayd.scim.links import Links
from gatewayd.scim.records import PublicSite
from gatewayd.scim.syntax import Grammar, Node, Path
from gatewayd.scim.tokenkeeper import ScimTokenKeeper, TokenSource
from gatewayd.scim.tokens import ScimTokens
from gatewayd.scim.users import ProvisionedUsers
from gatewayd.settings import Settings
from gatewayd.storage.directory import TortoiseDirectory
from gatewayd.storage.readers import Reader

GRAMMAR: Final = "gatewayd.scim.grammar"


class LazyGrammar:
    """The grammar of filters and paths, loaded when it is needed: its library takes half a second."""

    @cached_property
    def _grammar(self) -> Grammar:
        grammar: Grammar = importlib.import_module(GRAMMAR).Rfc7644Grammar()
        return grammar

    async def load(self) -> None:
        """Load it now, beside the event loop."""
        await asyncio.to_thread(getattr, self, "_grammar")

    def parse_filter(self, text: str) -> Node:
        """Return what a filter says."""
        return self._grammar.parse_filter(text)

    def parse_path(self, text: str) -> Path:
        """Return what a path says."""
        return self._grammar.parse_path(text)


@dataclass(frozen=True, slots=True)
class Provisioning:
    """What SCIM is served with, on both sockets."""

    users: ProvisionedUsers
    groups: ProvisionedGroups
    tokens: ScimTokens
    keeper: ScimTokenKeeper
    activity: Activity
    directory: TortoiseDirectory
    links: Links
    grammar: LazyGrammar
    provider: str
    site: PublicSite

    async def configure(self, settings: Settings) -> None:
        """Take the tokens and the address of a reload, and be ready for filters when SCIM was switched on."""
        self.site.address = settings.webui_url
        self.keeper.configure(token_source(settings))
        if settings.scim_enabled:
            await self.grammar.load()


def make_provisioning(settings: Settings, accounts: Accounts, reader: Reader) -> Provisioning:
    """Return the provisioning services; the routes are there even while SCIM is off.

    `reader` serves the searches, which no transaction is part of.
    """
    provider = settings.scim_auth_provider
    directory, grammar = TortoiseDirectory(reader), LazyGrammar()
    source = token_source(settings)
    tokens = ScimTokens(source.enabled, source.values)
    return Provisioning(
        users=ProvisionedUsers(accounts.users, directory, accounts.commits, grammar, provider),
        groups=ProvisionedGroups(accounts.groups, directory, accounts.commits, grammar, provider),
        tokens=tokens,
        keeper=ScimTokenKeeper(tokens, source),
        activity=Activity(),
        directory=directory,
        links=Links(accounts.users, accounts.groups, TortoiseDirectory(), accounts.commits, provider),
        grammar=grammar,
        provider=provider,
        site=PublicSite(settings.webui_url),
    )


def token_source(settings: Settings) -> TokenSource:
    """Return which SCIM tokens are in force, and where they come from."""
    return TokenSource(
        enabled=settings.scim_enabled,
        values=tuple(token.get_secret_value() for token in settings.scim_token),
        path=settings.scim_token_path(),
        origin=settings.origins["scim_token"].text,
        is_external=settings.is_scim_token_external,
    )
