"""The client of the control socket: one method per control route."""

import socket
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

from gatewayctl.asking import segment
from gatewayctl.client_live import LiveClient
from gatewayctl.client_plugins import PluginClient
from gatewayctl.transport import Readable
from gatewayctl.wire import (
    chat,
    collections,
    database,
    files,
    groups,
    health,
    keys,
    models,
    permissions,
    scim,
    settings,
    setup,
    users,
)

SYSTEM_SOCKET: Final = Path("/run/gatewayd/control.sock")
QUICKSTART_SOCKET: Final = Path("gatewayd-state/control.sock")


def default_socket() -> Path:
    """Return the system's socket, or that of a quickstart here when nobody listens on the system's."""
    if QUICKSTART_SOCKET.exists() and _is_deserted(SYSTEM_SOCKET):
        return QUICKSTART_SOCKET
    return SYSTEM_SOCKET


def _is_deserted(path: Path) -> bool:
    """Tell whether the socket is absent or was left behind; one that may not be opened has an owner."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return True
        except OSError:
            return False
    return False


class ControlClient(LiveClient, PluginClient):
    """Asks the daemon behind a control socket; every failure is a `CommandError`."""

    def run_setup(self, request: setup.Setup, *, dry_run: bool = False) -> setup.SetupReply:
        """Make the first administrator."""
        return self._write("POST", "/v1/setup", setup.SetupReply, request, dry_run)

    def get_health(self) -> health.Health:
        """Return the daemon's state."""
        return self._read("/v1/health", health.Health)

    def check_database(self, request: database.DatabaseCheck) -> database.DatabaseState:
        """Look for damage to the database, however long the daemon is allowed to take."""
        return self._transport.patient.call("POST", "/v1/database/check", database.DatabaseState, {}, request)

    def list_users(self, query: str = "", limit: int | None = None) -> users.UserList:
        """Return users, oldest first; `query` is part of a name or an e-mail."""
        return self._read("/v1/users", users.UserList, query=query or None, limit=limit)

    def get_user(self, ref: str) -> users.User:
        """Return one user by id or e-mail."""
        return self._read(f"/v1/users/{segment(ref)}", users.User)

    def create_user(self, request: users.NewUser, *, dry_run: bool = False) -> users.UserWritten:
        """Create a user."""
        return self._write("POST", "/v1/users", users.UserWritten, request, dry_run)

    def ensure_user(self, request: users.NewUser, *, dry_run: bool = False) -> users.UserWritten:
        """Create a user, or bring the one with this e-mail into the given state."""
        return self._write("PUT", "/v1/users", users.UserWritten, request, dry_run)

    def change_user(self, ref: str, request: users.UserChange, *, dry_run: bool = False) -> users.UserWritten:
        """Change the given fields of a user."""
        return self._write("PATCH", f"/v1/users/{segment(ref)}", users.UserWritten, request, dry_run)

    def remove_user(self, ref: str, *, dry_run: bool = False) -> users.UserWritten:
        """Delete a user with everything that belongs to the account."""
        return self._write("DELETE", f"/v1/users/{segment(ref)}", users.UserWritten, None, dry_run)

    def set_password(
        self, ref: str, request: users.PasswordChange, *, dry_run: bool = False
    ) -> users.UserWritten:
        """Give a user a new password, which ends every session."""
        path = f"/v1/users/{segment(ref)}/password"
        return self._write("POST", path, users.UserWritten, request, dry_run)

    def link_user(self, ref: str, request: scim.Link, *, dry_run: bool = False) -> users.UserWritten:
        """Attach what a provider calls a user."""
        return self._write("POST", f"/v1/users/{segment(ref)}/link", users.UserWritten, request, dry_run)

    def unlink_user(self, ref: str, request: scim.Unlink, *, dry_run: bool = False) -> users.UserWritten:
        """Take away what a provider calls a user."""
        return self._write("POST", f"/v1/users/{segment(ref)}/unlink", users.UserWritten, request, dry_run)

    def list_groups(self, user: str | None = None) -> groups.GroupList:
        """Return all groups, or those of one user."""
        return self._read("/v1/groups", groups.GroupList, user=user)

    def get_group(self, ref: str) -> groups.Group:
        """Return one group by id or name."""
        return self._read(f"/v1/groups/{segment(ref)}", groups.Group)

    def create_group(self, request: groups.NewGroup, *, dry_run: bool = False) -> groups.GroupWritten:
        """Create a group."""
        return self._write("POST", "/v1/groups", groups.GroupWritten, request, dry_run)

    def ensure_group(self, request: groups.NewGroup, *, dry_run: bool = False) -> groups.GroupWritten:
        """Create a group, or bring the one with this name into the given state."""
        return self._write("PUT", "/v1/groups", groups.GroupWritten, request, dry_run)

    def change_group(
        self, ref: str, request: groups.GroupChange, *, dry_run: bool = False
    ) -> groups.GroupWritten:
        """Change the given fields of a group."""
        return self._write("PATCH", f"/v1/groups/{segment(ref)}", groups.GroupWritten, request, dry_run)

    def remove_group(self, ref: str, *, dry_run: bool = False) -> groups.GroupWritten:
        """Delete a group."""
        return self._write("DELETE", f"/v1/groups/{segment(ref)}", groups.GroupWritten, None, dry_run)

    def link_group(self, ref: str, request: scim.Link, *, dry_run: bool = False) -> groups.GroupWritten:
        """Attach what a provider calls a group."""
        return self._write("POST", f"/v1/groups/{segment(ref)}/link", groups.GroupWritten, request, dry_run)

    def unlink_group(self, ref: str, request: scim.Unlink, *, dry_run: bool = False) -> groups.GroupWritten:
        """Take away what a provider calls a group."""
        path = f"/v1/groups/{segment(ref)}/unlink"
        return self._write("POST", path, groups.GroupWritten, request, dry_run)

    def list_members(self, ref: str) -> groups.MemberList:
        """Return the members of a group."""
        return self._read(f"/v1/groups/{segment(ref)}/members", groups.MemberList)

    def add_members(self, ref: str, request: groups.Members, *, dry_run: bool = False) -> groups.GroupWritten:
        """Add users to a group by hand."""
        path = f"/v1/groups/{segment(ref)}/members/add"
        return self._write("POST", path, groups.GroupWritten, request, dry_run)

    def remove_members(
        self, ref: str, request: groups.RemovedMembers, *, dry_run: bool = False
    ) -> groups.GroupWritten:
        """Take users out of a group, or only what one source says of them."""
        path = f"/v1/groups/{segment(ref)}/members/remove"
        return self._write("POST", path, groups.GroupWritten, request, dry_run)

    def list_permissions(self, group: str | None = None) -> permissions.PermissionList:
        """Return the default permissions, or the ones that a group adds."""
        return self._read("/v1/permissions", permissions.PermissionList, group=group)

    def set_permissions(
        self, request: permissions.PermissionChange, *, dry_run: bool = False
    ) -> permissions.PermissionsWritten:
        """Set default permissions, or those of a group."""
        return self._write("PATCH", "/v1/permissions", permissions.PermissionsWritten, request, dry_run)

    def reset_permissions(
        self, request: permissions.PermissionReset, *, dry_run: bool = False
    ) -> permissions.PermissionsWritten:
        """Return default permissions to their initial values, or take them from a group."""
        path = "/v1/permissions/reset"
        return self._write("POST", path, permissions.PermissionsWritten, request, dry_run)

    def explain_permissions(self, user: str) -> permissions.Explanation:
        """Return the effective permissions of a user and what allows each."""
        return self._read(f"/v1/permissions/explain/{segment(user)}", permissions.Explanation)

    def audit_permissions(self) -> permissions.PermissionAudit:
        """Return who holds something on the source of tools without the permission for it."""
        return self._read("/v1/permissions/audit", permissions.PermissionAudit)

    def list_keys(self, user: str | None = None) -> keys.KeyList:
        """Return all keys, or those of one user."""
        return self._read("/v1/keys", keys.KeyList, user=user)

    def create_key(self, request: keys.NewKey, *, dry_run: bool = False) -> keys.KeyWritten:
        """Issue a key; the reply is the only place where its value is."""
        return self._write("POST", "/v1/keys", keys.KeyWritten, request, dry_run)

    def revoke_key(self, key_id: str, *, dry_run: bool = False) -> keys.KeyWritten:
        """End a key."""
        return self._write("DELETE", f"/v1/keys/{segment(key_id)}", keys.KeyWritten, None, dry_run)

    def explain_keys(self, user: str) -> keys.KeyReasons:
        """Return whether a user may have keys, and if not, why."""
        return self._read(f"/v1/keys/why/{segment(user)}", keys.KeyReasons)

    def list_models(self, user: str | None = None, *, refresh: bool = False) -> models.ModelList:
        """Return all models, or those that one user may use; `refresh` asks every source again first."""
        return self._read("/v1/models", models.ModelList, user=user, refresh="true" if refresh else None)

    def get_model(self, model_id: str) -> models.Model:
        """Return one model; its id travels in the query, as it may hold slashes."""
        return self._read("/v1/models/one", models.Model, id=model_id)

    def grant_model(self, request: models.AccessChange, *, dry_run: bool = False) -> models.ModelWritten:
        """Give users, groups or everyone a right on a model."""
        return self._write("POST", "/v1/models/grant", models.ModelWritten, request, dry_run)

    def revoke_model(self, request: models.AccessChange, *, dry_run: bool = False) -> models.ModelWritten:
        """Take a right on a model away."""
        return self._write("POST", "/v1/models/revoke", models.ModelWritten, request, dry_run)

    def list_settings(self) -> settings.SettingList:
        """Return all runtime settings."""
        return self._read("/v1/settings", settings.SettingList)

    def set_settings(
        self, request: settings.SettingChange, *, dry_run: bool = False
    ) -> settings.SettingsWritten:
        """Write runtime settings, all or none."""
        return self._write("PATCH", "/v1/settings", settings.SettingsWritten, request, dry_run)

    def reset_settings(
        self, request: settings.SettingReset, *, dry_run: bool = False
    ) -> settings.SettingsWritten:
        """Return runtime settings to their configured values."""
        return self._write("POST", "/v1/settings/reset", settings.SettingsWritten, request, dry_run)

    def get_scim_token(self) -> scim.ScimToken:
        """Return what may be told of the SCIM tokens."""
        return self._read("/v1/scim-token", scim.ScimToken)

    def create_scim_token(self, *, dry_run: bool = False) -> scim.ScimTokenWritten:
        """Make the SCIM token; the reply is the only place where its value is."""
        return self._write("POST", "/v1/scim-token", scim.ScimTokenWritten, None, dry_run)

    def rotate_scim_token(self, *, dry_run: bool = False) -> scim.ScimTokenWritten:
        """Make a new SCIM token beside the present one."""
        return self._write("POST", "/v1/scim-token/rotate", scim.ScimTokenWritten, None, dry_run)

    def retire_scim_token(self, *, dry_run: bool = False) -> scim.ScimTokenWritten:
        """Drop the older of two SCIM tokens."""
        return self._write("POST", "/v1/scim-token/retire", scim.ScimTokenWritten, None, dry_run)

    def get_scim_status(self) -> scim.ScimStatus:
        """Return the state of provisioning."""
        return self._read("/v1/scim", scim.ScimStatus)

    def list_scim_requests(self, limit: int | None = None) -> scim.ScimLog:
        """Return the last SCIM requests, newest first."""
        return self._read("/v1/scim/log", scim.ScimLog, limit=limit)

    def list_files(
        self,
        query: str = "",
        user: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        *,
        orphaned: bool = False,
    ) -> files.FileList:
        """Return files, newest first; `query` matches whole names, `*` and `?` in it anything. `orphaned`
        ones are those of removed users."""
        page = {"limit": limit, "offset": offset or None, "orphaned": "true" if orphaned else None}
        found = {"query": query or None, "user": user, "status": status}
        return self._read("/v1/files", files.FileList, **found, **page)

    def get_file(self, file_id: str) -> files.File:
        """Return one file."""
        return self._read(f"/v1/files/{segment(file_id)}", files.File)

    def get_file_text(self, file_id: str) -> files.FileText:
        """Return what was extracted from a file."""
        return self._read(f"/v1/files/{segment(file_id)}/text", files.FileText)

    def add_file(self, request: files.NewFile, content: Readable, size: int) -> files.FileWritten:
        """Upload a file of `size` bytes."""
        query = request.model_dump(exclude_none=True)
        return self._transport.upload("/v1/files", files.FileWritten, query, content, size)

    def retry_file(self, file_id: str, *, dry_run: bool = False) -> files.FileWritten:
        """Process a file anew."""
        path = f"/v1/files/{segment(file_id)}/retry"
        return self._write("POST", path, files.FileWritten, None, dry_run)

    def give_file(self, file_id: str, request: files.Gift, *, dry_run: bool = False) -> files.FileWritten:
        """Make another account the owner of a file."""
        return self._write("POST", f"/v1/files/{segment(file_id)}/give", files.FileWritten, request, dry_run)

    def remove_file(self, file_id: str, *, dry_run: bool = False) -> files.FileWritten:
        """Delete a file, its passages and its places in collections."""
        return self._write("DELETE", f"/v1/files/{segment(file_id)}", files.FileWritten, None, dry_run)

    def wait_for_files(self, request: files.Wait) -> files.Waited:
        """Return when none of the files is pending, or when the time is up."""
        return self._transport.call("POST", "/v1/files/wait", files.Waited, {}, request)

    def get_queue(self) -> files.Queue:
        """Return how much is to do."""
        return self._read("/v1/queue", files.Queue)

    def list_collections(
        self, query: str = "", limit: int | None = None, offset: int = 0, *, orphaned: bool = False
    ) -> collections.CollectionList:
        """Return collections, last changed first; `query` is part of a name or description. `orphaned` ones
        are those of removed users."""
        page = {"limit": limit, "offset": offset or None, "orphaned": "true" if orphaned else None}
        return self._read("/v1/collections", collections.CollectionList, query=query or None, **page)

    def get_collection(self, ref: str) -> collections.Collection:
        """Return one collection by id or name."""
        return self._read(f"/v1/collections/{segment(ref)}", collections.Collection)

    def list_collection_files(
        self, ref: str, offset: int = 0, limit: int | None = None
    ) -> collections.CollectionFiles:
        """Return the files of a collection."""
        path = f"/v1/collections/{segment(ref)}/files"
        return self._read(path, collections.CollectionFiles, offset=offset or None, limit=limit)

    def create_collection(
        self, request: collections.NewCollection, *, dry_run: bool = False
    ) -> collections.CollectionWritten:
        """Make a collection."""
        return self._write("POST", "/v1/collections", collections.CollectionWritten, request, dry_run)

    def ensure_collection(
        self, request: collections.NewCollection, *, dry_run: bool = False
    ) -> collections.CollectionWritten:
        """Make a collection unless there is one of this name."""
        return self._write("PUT", "/v1/collections", collections.CollectionWritten, request, dry_run)

    def change_collection(
        self, ref: str, request: collections.CollectionChange, *, dry_run: bool = False
    ) -> collections.CollectionWritten:
        """Change the given fields of a collection."""
        path = f"/v1/collections/{segment(ref)}"
        return self._write("PATCH", path, collections.CollectionWritten, request, dry_run)

    def give_collection(
        self, ref: str, request: files.Gift, *, dry_run: bool = False
    ) -> collections.CollectionWritten:
        """Make another account the owner of a collection."""
        path = f"/v1/collections/{segment(ref)}/give"
        return self._write("POST", path, collections.CollectionWritten, request, dry_run)

    def remove_collection(self, ref: str, *, dry_run: bool = False) -> collections.CollectionWritten:
        """Delete a collection; its files stay."""
        path = f"/v1/collections/{segment(ref)}"
        return self._write("DELETE", path, collections.CollectionWritten, None, dry_run)

    def add_to_collection(
        self, ref: str, request: collections.Members, *, dry_run: bool = False
    ) -> collections.MembersWritten:
        """Put files into a collection."""
        path = f"/v1/collections/{segment(ref)}/add"
        return self._write("POST", path, collections.MembersWritten, request, dry_run)

    def remove_from_collection(
        self, ref: str, request: collections.Members, *, dry_run: bool = False
    ) -> collections.MembersWritten:
        """Take files out of a collection."""
        path = f"/v1/collections/{segment(ref)}/remove"
        return self._write("POST", path, collections.MembersWritten, request, dry_run)

    def compare_collection(self, ref: str, request: collections.Sync) -> collections.Difference:
        """Return what a collection lacks of a directory, and what it has too much."""
        path = f"/v1/collections/{segment(ref)}/diff"
        return self._transport.call("POST", path, collections.Difference, {}, request)

    def query_collection(self, ref: str, request: collections.Query) -> collections.Answer:
        """Search a collection."""
        path = f"/v1/collections/{segment(ref)}/query"
        return self._transport.call("POST", path, collections.Answer, {}, request)

    def check_collection(self, ref: str) -> collections.CheckReport:
        """Compare the indexes of a collection with its passages, and mend them."""
        path = f"/v1/collections/{segment(ref)}/check"
        return self._transport.call("POST", path, collections.CheckReport, {})

    def get_reindex(self) -> collections.Reindex:
        """Return how far the vectors of the configured model are."""
        return self._read("/v1/reindex", collections.Reindex)

    def start_reindex(self) -> collections.Reindex:
        """Begin to make vectors of all passages with the configured model."""
        return self._transport.call("POST", "/v1/reindex", collections.Reindex, {})

    def ask(self, request: chat.Chat) -> dict[str, Any]:
        """Return a model's whole answer as an OpenAI chat completion."""
        return self._transport.ask("/v1/chat", request.model_copy(update={"stream": False}))

    def stream(self, request: chat.Chat) -> Generator[dict[str, Any], None, None]:
        """Yield a model's answer as OpenAI chunks while it comes; closing the iterator stops the model."""
        return self._transport.stream("/v1/chat", request.model_copy(update={"stream": True}))
