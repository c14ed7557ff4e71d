"""What a change by another node means for the services.

See gatewayd-cluster(7), INVALIDATION.
"""

from typing import Final

from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.accounts.interfaces import RevocationStore, UserStore
from gatewayd.accounts.permissions import Permissions
from gatewayd.accounts.runtime_settings import RuntimeSettings
from gatewayd.assembly.accounts import AccountStores
from gatewayd.assembly.cluster.services import ChangeServices
from gatewayd.assembly.services import GatewayServices
from gatewayd.catalog.providers.service import ManagedProviders
from gatewayd.catalog.service import Catalog
from gatewayd.cluster.invalidation import ALL, Changed, InvalidationMap, subjects
from gatewayd.cluster.records import ChangeKind
from gatewayd.plugins.records import PluginFamily
from gatewayd.plugins.registry import PluginManager

MODEL_GRANT: Final = "model"
PLUGIN_GRANTS: Final = {family.value for family in PluginFamily}
"""Types of resources in access lists; plugins have the name of their family."""

ENDINGS: Final = (
    ChangeKind.USER_OUT,
    ChangeKind.USER_REMOVED,
    ChangeKind.USER_SIGNED_OUT,
    ChangeKind.SESSION,
)
"""Kinds that end requests; one for all subjects does not say whose."""


def watch_changes(services: GatewayServices, stores: AccountStores) -> None:
    """Apply the changes of other nodes to the services from now on; does nothing without a reader."""
    cluster, accounts = services.change_log, services.accounts
    if cluster.reader is None:
        return
    caches = cluster.caches
    AccountInvalidation(accounts.changes).register(caches)
    recheck = AccessRecheck(stores.users, stores.revocations, accounts.changes, cluster)
    caches.reload(ENDINGS, recheck.after)
    values = StoredValues(accounts.runtime, accounts.permissions, services.providers, accounts.changes)
    caches.reload([ChangeKind.SETTING], values.reload)
    caches.reload([ChangeKind.MODEL, ChangeKind.GRANT], ModelRecords(services.catalog).reload)
    plugins = StoredPlugins(services.extensions.registry)
    caches.reload([ChangeKind.PLUGIN, ChangeKind.GRANT], plugins.reload)
    limits = services.limits.limits

    async def reload_limits(_: Changed) -> None:
        await limits.load_rules()

    caches.reload([ChangeKind.LIMIT], reload_limits)
    keeper = services.provisioning.keeper

    async def reload_scim_tokens(_: Changed) -> None:
        await keeper.load()

    caches.reload([ChangeKind.SCIM_TOKEN], reload_scim_tokens)
    services.tasks.spawn("change log", cluster.reader.run())
    services.tasks.spawn("questions to the change log", cluster.reader.answer())


class AccountInvalidation:
    """Publishes changes of accounts by other nodes as those of this process are published."""

    def __init__(self, changes: AccountChangeNotifier) -> None:
        self._changes = changes

    def register(self, caches: InvalidationMap) -> None:
        """Add the kinds of accounts to the map."""
        for kinds, forget in (
            ((ChangeKind.USER, ChangeKind.MEMBER), self._changed),
            ((ChangeKind.KEY,), self._asks_again),
            ((ChangeKind.GROUP,), self._group),
            ((ChangeKind.USER_OUT,), self._out),
            ((ChangeKind.USER_REMOVED,), self._removed),
            ((ChangeKind.USER_SIGNED_OUT,), self._signed_out),
            ((ChangeKind.SESSION,), self._session),
        ):
            caches.drop(kinds, forget)

    def _changed(self, user_id: str) -> None:
        self._changes.publish(AccountChange(user_id or None))

    def _asks_again(self, user_id: str) -> None:
        self._changes.publish(AccountChange(user_id or None, asks_again=True))

    def _group(self, _: str) -> None:
        self._changes.publish(AccountChange(None))

    def _out(self, user_id: str) -> None:
        # It is not known who is out: all long connections authenticate again, and AccessRecheck looks at
        # the running requests.
        is_known = user_id != ALL
        self._changes.publish(AccountChange(user_id or None, is_out=is_known, asks_again=not is_known))

    def _removed(self, user_id: str) -> None:
        if user_id == ALL:
            self._asks_again(ALL)
        else:
            self._changes.publish(AccountChange(user_id, is_out=True, is_removed=True))

    def _signed_out(self, user_id: str) -> None:
        self._changes.publish(AccountChange(user_id or None, asks_again=True, is_signed_out=user_id != ALL))

    def _session(self, subject: str) -> None:
        user_id, _, session_id = subject.rpartition("/")
        ended = (session_id,) if session_id else ()
        self._changes.publish(AccountChange(user_id or None, asks_again=True, ended=ended))


class AccessRecheck:
    """Ends the running requests of accounts and sessions that ended while their changes were not listed."""

    def __init__(
        self,
        users: UserStore,
        revocations: RevocationStore,
        changes: AccountChangeNotifier,
        cluster: ChangeServices,
    ) -> None:
        self._users = users
        self._revocations = revocations
        self._changes = changes
        self._cluster = cluster

    async def after(self, changed: Changed) -> None:
        """Look at every account with a running request if changes do not name theirs."""
        if subjects(changed) is not None:
            return
        running = self._cluster.running()
        found = {user.id: user for user in await self._users.list_by_ids(list(running))}
        for user_id, session_ids in running.items():
            user = found.get(user_id)
            if user is None or not user.is_verified:
                self._changes.publish(AccountChange(user_id, is_out=True, is_removed=user is None))
                continue
            ended = tuple([each for each in session_ids if await self._revocations.contains(each)])
            if ended:
                self._changes.publish(AccountChange(user_id, asks_again=True, ended=ended))


class StoredValues:
    """The stored values: settings, default permissions and providers."""

    def __init__(
        self,
        runtime: RuntimeSettings,
        permissions: Permissions,
        providers: ManagedProviders,
        changes: AccountChangeNotifier,
    ) -> None:
        self._runtime = runtime
        self._permissions = permissions
        self._providers = providers
        self._changes = changes

    async def reload(self, _: Changed) -> None:
        """Read all of them, and let the rights of all accounts be found again."""
        await self._runtime.load()
        await self._permissions.load()
        self._changes.publish(AccountChange(None))
        await self._providers.load()
        self._providers.on_change()


class ModelRecords:
    """The records of models with their access lists."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def reload(self, changed: Changed) -> None:
        """Read the records that changed."""
        is_all = False
        model_ids: set[str] = set()
        for kind, subject in changed:
            resource, _, resource_id = subject.partition("/")
            if subject == ALL:
                is_all = True
            elif kind is ChangeKind.MODEL:
                model_ids.add(subject)
            elif resource == MODEL_GRANT:
                model_ids.add(resource_id)
        await self._catalog.load(None if is_all else sorted(model_ids))


class StoredPlugins:
    """The plugins of the database, and the stored state of those of files."""

    def __init__(self, registry: PluginManager) -> None:
        self._registry = registry

    async def reload(self, changed: Changed) -> None:
        """Read the plugins that changed."""
        keys: set[tuple[PluginFamily, str]] = set()
        for kind, subject in changed:
            family, _, plugin_id = subject.partition("/")
            if subject == ALL:
                await self._registry.refresh()
                return
            if kind is ChangeKind.PLUGIN or family in PLUGIN_GRANTS:
                keys.add((PluginFamily(family), plugin_id))
        if keys:
            await self._registry.refresh(keys)
