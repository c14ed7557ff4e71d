"""SCIM over the account services: token, resources, request log."""

from dataclasses import dataclass

from gatewayd.assembly.accounts import AccountServices
from gatewayd.scim.groups import ProvisionedGroups
from gatewayd.scim.links import ProviderLinks
from gatewayd.scim.records import PublicSite
from gatewayd.scim.request_log import ScimRequestLog
from gatewayd.scim.tokens.credential import ScimTokens
from gatewayd.scim.tokens.rotation import ScimTokenKeeper, TokenSource
from gatewayd.scim.users import ProvisionedUsers
from gatewayd.settings import Settings
from gatewayd.storage.engine.readers import QueryReader
from gatewayd.storage.identities import TortoiseIdentities
from gatewayd.storage.scim.directory import TortoiseDirectory
from gatewayd.storage.scim.tokens import TortoiseScimTokens


@dataclass(frozen=True, slots=True)
class ScimServices:
    """The SCIM services of both sockets."""

    users: ProvisionedUsers
    groups: ProvisionedGroups
    tokens: ScimTokens
    keeper: ScimTokenKeeper
    activity: ScimRequestLog
    directory: TortoiseDirectory
    links: ProviderLinks
    provider: str
    site: PublicSite

    async def configure(self, settings: Settings) -> None:
        """Apply the tokens and the address of a reload."""
        self.site.address = settings.webui_url
        await self.keeper.configure(token_source(settings))


def make_provisioning(
    settings: Settings, accounts: AccountServices, reader: QueryReader, identities: TortoiseIdentities
) -> ScimServices:
    """Return the SCIM services; the routes exist while SCIM is off, too, and the keeper is not open yet.

    `reader` serves the searches, which no transaction is part of. `identities` has the links of sign-ins.
    """
    provider = settings.scim_auth_provider
    directory = TortoiseDirectory(reader)
    source = token_source(settings)
    tokens = ScimTokens(source.enabled, ())
    return ScimServices(
        users=ProvisionedUsers(accounts.users, directory, accounts.commits, provider),
        groups=ProvisionedGroups(accounts.groups, directory, accounts.commits, provider),
        tokens=tokens,
        keeper=ScimTokenKeeper(tokens, source, TortoiseScimTokens(), accounts.commits),
        activity=ScimRequestLog(),
        directory=directory,
        links=ProviderLinks(
            accounts.users, accounts.groups, TortoiseDirectory(), identities, accounts.commits, provider
        ),
        provider=provider,
        site=PublicSite(settings.webui_url),
    )


def token_source(settings: Settings) -> TokenSource:
    """Return where the SCIM tokens are."""
    if not settings.is_scim_token_external:
        return TokenSource(settings.scim_enabled, settings.scim_token_path())
    return TokenSource(
        enabled=settings.scim_enabled,
        path=settings.scim_token_path(),
        values=tuple(token.get_secret_value() for token in settings.scim_token),
        origin=settings.origins["scim_token"].text,
        is_external=True,
    )
