"""Route table of the control API: the client sends requests by these rows, the daemon registers handlers."""

from typing import Final

from gatewayctl.wire import (
    batches,
    chat,
    collections,
    database,
    events,
    files,
    groups,
    health,
    invitations,
    keys,
    models,
    permissions,
    plugins,
    scim,
    settings,
    setup,
    stored_chats,
    tasks,
    tool_servers,
    users,
)
from gatewayctl.wire.consumption import limits, usage
from gatewayctl.wire.endpoint import Endpoint, ForeignReply, NoBody, ReplyType, RequestType
from gatewayctl.wire.upkeep import audit, doctor, garbage, nodes, providers, state


def _get(path: str, reply: type[ReplyType], summary: str, *query: str) -> Endpoint[NoBody, ReplyType]:
    return Endpoint("GET", path, NoBody, reply, summary, query)


def _post(
    path: str, request: type[RequestType], reply: type[ReplyType], summary: str, *, slow: bool = False
) -> Endpoint[RequestType, ReplyType]:
    """Return the row of a POST request without a dry run."""
    return Endpoint("POST", path, request, reply, summary, slow=slow)


def _write(
    method: str,
    path: str,
    request: type[RequestType],
    reply: type[ReplyType],
    summary: str,
    *query: str,
    slow: bool = False,
) -> Endpoint[RequestType, ReplyType]:
    """Return the row of a change, which has a `dry_run`."""
    return Endpoint(method, path, request, reply, summary, (*query, "dry_run"), slow)


# Setup, health and the database.
RUN_SETUP: Final = _write(
    "POST", "/v1/setup", setup.Setup, setup.SetupReply, "Create the first administrator"
)
GET_HEALTH: Final = _get("/v1/health", health.Health, "Show the daemon's state")
LIST_LOG_LEVELS: Final = _get("/v1/log-levels", health.LoggerLevels, "List levels of loggers")
SET_LOG_LEVEL: Final = _post(
    "/v1/log-levels", health.LevelChange, health.LoggerLevel, "Set the level of a logger"
)
READ_METRICS: Final = _get("/v1/metrics", ForeignReply, "Show the metrics")
CHECK_DATABASE: Final = _post(
    "/v1/database/check", database.DatabaseCheck, database.DatabaseState, "Check the database", slow=True
)

# Users.
LIST_USERS: Final = _get("/v1/users", users.UserList, "List users", "query", "limit")
CREATE_USER: Final = _write("POST", "/v1/users", users.NewUser, users.UserWritten, "Create a user")
ENSURE_USER: Final = _write("PUT", "/v1/users", users.NewUser, users.UserWritten, "Ensure a user")
GET_USER: Final = _get("/v1/users/{ref}", users.User, "Show a user")
CHANGE_USER: Final = _write("PATCH", "/v1/users/{ref}", users.UserChange, users.UserWritten, "Change a user")
REMOVE_USER: Final = _write("DELETE", "/v1/users/{ref}", NoBody, users.UserWritten, "Remove a user")
EXPORT_USER: Final = _get("/v1/users/{ref}/export", ForeignReply, "Export what belongs to a person")
ERASE_USER: Final = _write(
    "POST", "/v1/users/{ref}/erase", NoBody, users.Erasure, "Erase what belongs to a person", slow=True
)
LINK_USER: Final = _write(
    "POST", "/v1/users/{ref}/link", scim.Link, users.UserWritten, "Link a user to a provider's id"
)
SET_PASSWORD: Final = _write(
    "POST", "/v1/users/{ref}/password", users.PasswordChange, users.UserWritten, "Set the password of a user"
)
LIST_SESSIONS: Final = _get("/v1/users/{ref}/sessions", users.SessionList, "List the sessions of a user")
END_SESSIONS: Final = _write(
    "DELETE", "/v1/users/{ref}/sessions", NoBody, users.UserWritten, "End the sessions of a user"
)
CREATE_SIGN_IN_LINK: Final = _post(
    "/v1/users/{ref}/sign-in-link",
    invitations.NewSignInLink,
    invitations.SignInAddress,
    "Create a sign-in link of a user",
)
LIST_IDENTITIES: Final = _get(
    "/v1/users/{ref}/identities", users.IdentityList, "List the identity providers of a user"
)
REMOVE_IDENTITY: Final = _write(
    "DELETE",
    "/v1/users/{ref}/identities/{provider}",
    NoBody,
    users.UserWritten,
    "Unlink a user from a sign-in provider",
)
UNLINK_USER: Final = _write(
    "POST", "/v1/users/{ref}/unlink", scim.Unlink, users.UserWritten, "Unlink a user from a provider's id"
)

# Invitations.
LIST_INVITATIONS: Final = _get("/v1/invitations", invitations.InvitationList, "List invitations")
CREATE_INVITATION: Final = _write(
    "POST",
    "/v1/invitations",
    invitations.NewInvitation,
    invitations.InvitationWritten,
    "Invite a person",
)
REVOKE_INVITATION: Final = _write(
    "DELETE", "/v1/invitations/{id}", NoBody, invitations.InvitationWritten, "Revoke an invitation"
)

# Groups.
LIST_GROUPS: Final = _get("/v1/groups", groups.GroupList, "List groups", "user")
CREATE_GROUP: Final = _write("POST", "/v1/groups", groups.NewGroup, groups.GroupWritten, "Create a group")
ENSURE_GROUP: Final = _write("PUT", "/v1/groups", groups.NewGroup, groups.GroupWritten, "Ensure a group")
GET_GROUP: Final = _get("/v1/groups/{ref}", groups.Group, "Show a group")
CHANGE_GROUP: Final = _write(
    "PATCH", "/v1/groups/{ref}", groups.GroupChange, groups.GroupWritten, "Change a group"
)
REMOVE_GROUP: Final = _write("DELETE", "/v1/groups/{ref}", NoBody, groups.GroupWritten, "Remove a group")
LINK_GROUP: Final = _write(
    "POST", "/v1/groups/{ref}/link", scim.Link, groups.GroupWritten, "Link a group to a provider's id"
)
LIST_MEMBERS: Final = _get("/v1/groups/{ref}/members", groups.MemberList, "List the members of a group")
ADD_MEMBERS: Final = _write(
    "POST", "/v1/groups/{ref}/members/add", groups.GroupMembers, groups.GroupWritten, "Add members to a group"
)
REMOVE_MEMBERS: Final = _write(
    "POST",
    "/v1/groups/{ref}/members/remove",
    groups.RemovedMembers,
    groups.GroupWritten,
    "Remove members from a group",
)
UNLINK_GROUP: Final = _write(
    "POST", "/v1/groups/{ref}/unlink", scim.Unlink, groups.GroupWritten, "Unlink a group from a provider's id"
)

# Permissions.
LIST_PERMISSIONS: Final = _get("/v1/permissions", permissions.PermissionList, "List permissions", "group")
SET_PERMISSIONS: Final = _write(
    "PATCH",
    "/v1/permissions",
    permissions.PermissionChange,
    permissions.PermissionsWritten,
    "Set permissions",
)
AUDIT_PERMISSIONS: Final = _get(
    "/v1/permissions/audit",
    permissions.PermissionAudit,
    "List who holds rights on tools without workspace.tools",
)
EXPLAIN_PERMISSIONS: Final = _get(
    "/v1/permissions/explain/{ref}", permissions.Explanation, "Explain a user's permissions"
)
RESET_PERMISSIONS: Final = _write(
    "POST",
    "/v1/permissions/reset",
    permissions.PermissionReset,
    permissions.PermissionsWritten,
    "Reset permissions",
)

# API keys.
LIST_KEYS: Final = _get("/v1/keys", keys.KeyList, "List API keys", "user")
CREATE_KEY: Final = _write("POST", "/v1/keys", keys.NewKey, keys.KeyWritten, "Issue an API key")
EXPLAIN_KEYS: Final = _get("/v1/keys/why/{ref}", keys.KeyReasons, "Explain whether a user may have API keys")
REVOKE_KEY: Final = _write("DELETE", "/v1/keys/{id}", NoBody, keys.KeyWritten, "Revoke an API key")

# Limits.
LIST_LIMITS: Final = _get("/v1/limits", limits.LimitList, "List limits")
SET_LIMIT: Final = _write("PUT", "/v1/limits", limits.LimitChange, limits.LimitWritten, "Set a limit")
SHOW_LIMIT: Final = _get("/v1/limits/{id}", limits.Limit, "Show a limit and its use", "user")
REMOVE_LIMIT: Final = _write("DELETE", "/v1/limits/{id}", NoBody, limits.LimitWritten, "Remove a limit")

# Usage.
REPORT_USAGE: Final = _get(
    "/v1/usage",
    usage.UsageReport,
    "Report the usage of models",
    *("by", "since", "until", "user", "group", "key", "model", "provider", "limit"),
)
SHOW_LOAD: Final = _get("/v1/load", usage.LoadSnapshot, "Show the calls of models in flight", "by")

# Batches.
LIST_BATCHES: Final = _get("/v1/batches", batches.BatchList, "List batches", "user")
SHOW_BATCH: Final = _get("/v1/batches/{id}", batches.Batch, "Show a batch")
CANCEL_BATCH: Final = _post("/v1/batches/{id}/cancel", NoBody, batches.Batch, "Cancel a batch")

# Settings.
LIST_SETTINGS: Final = _get("/v1/settings", settings.SettingList, "List settings")
SET_SETTINGS: Final = _write(
    "PATCH", "/v1/settings", settings.SettingChange, settings.SettingsWritten, "Set settings"
)
RESET_SETTINGS: Final = _write(
    "POST", "/v1/settings/reset", settings.SettingReset, settings.SettingsWritten, "Reset settings"
)

# SCIM.
GET_SCIM_TOKEN: Final = _get("/v1/scim-token", scim.ScimToken, "Show the SCIM token")
CREATE_SCIM_TOKEN: Final = _write(
    "POST", "/v1/scim-token", NoBody, scim.ScimTokenWritten, "Create the SCIM token"
)
RETIRE_SCIM_TOKEN: Final = _write(
    "POST", "/v1/scim-token/retire", NoBody, scim.ScimTokenWritten, "Retire the older SCIM token"
)
ROTATE_SCIM_TOKEN: Final = _write(
    "POST", "/v1/scim-token/rotate", NoBody, scim.ScimTokenWritten, "Rotate the SCIM token"
)
GET_SCIM_STATUS: Final = _get("/v1/scim", scim.ScimStatus, "Show the state of SCIM provisioning")
LIST_SCIM_REQUESTS: Final = _get("/v1/scim/log", scim.ScimLog, "List the last SCIM requests", "limit")

# Models.
LIST_MODELS: Final = _get("/v1/models", models.ModelList, "List models", "user", "refresh")
CREATE_MODEL: Final = _write(
    "POST", "/v1/models", models.NewModel, models.ModelWritten, "Create a custom model"
)
GRANT_MODEL: Final = _write(
    "POST", "/v1/models/grant", models.AccessChange, models.ModelWritten, "Grant a right on a model"
)
GET_MODEL: Final = _get("/v1/models/one", models.Model, "Show a model", "id")
REMOVE_MODEL: Final = _write("DELETE", "/v1/models/one", NoBody, models.ModelWritten, "Remove a model", "id")
UPDATE_MODEL: Final = _write(
    "PATCH", "/v1/models/one", models.ModelChange, models.ModelWritten, "Change the record of a model"
)
REVOKE_MODEL: Final = _write(
    "POST", "/v1/models/revoke", models.AccessChange, models.ModelWritten, "Revoke a right on a model"
)

# Chat.
CHAT: Final = _post("/v1/chat", chat.Chat, ForeignReply, "Ask a model", slow=True)
RESUME_ANSWER: Final = _get("/v1/chat/streams/{id}", ForeignReply, "Read an answer again", "user")
STOP_ANSWER: Final = Endpoint(
    "POST", "/v1/chat/streams/{id}/stop", NoBody, chat.AnswerStopped, "Stop an answer", ("user",)
)

# Files.
LIST_FILES: Final = _get(
    "/v1/files", files.FileList, "List files", "query", "user", "status", "limit", "offset", "orphaned"
)
ADD_FILE: Final = Endpoint(
    "POST",
    "/v1/files",
    files.NewFile,
    files.FileWritten,
    "Upload a file",
    tuple(files.NewFile.model_fields),
    slow=True,
)
WAIT_FOR_FILES: Final = _post("/v1/files/wait", files.Wait, files.Waited, "Wait for files")
GET_FILE: Final = _get("/v1/files/{id}", files.File, "Show a file")
REMOVE_FILE: Final = _write("DELETE", "/v1/files/{id}", NoBody, files.FileWritten, "Remove a file")
GIVE_FILE: Final = _write(
    "POST", "/v1/files/{id}/give", files.Gift, files.FileWritten, "Give a file to another account"
)
RETRY_FILE: Final = _write("POST", "/v1/files/{id}/retry", NoBody, files.FileWritten, "Process a file again")
GET_FILE_TEXT: Final = _get("/v1/files/{id}/text", files.FileText, "Show the text of a file")
GET_QUEUE: Final = _get("/v1/queue", files.Queue, "Show the queue of files")

# Collections.
LIST_COLLECTIONS: Final = _get(
    "/v1/collections", collections.CollectionList, "List collections", "query", "limit", "offset", "orphaned"
)
CREATE_COLLECTION: Final = _write(
    "POST", "/v1/collections", collections.NewCollection, collections.CollectionWritten, "Create a collection"
)
ENSURE_COLLECTION: Final = _write(
    "PUT", "/v1/collections", collections.NewCollection, collections.CollectionWritten, "Ensure a collection"
)
GET_COLLECTION: Final = _get("/v1/collections/{ref}", collections.Collection, "Show a collection")
CHANGE_COLLECTION: Final = _write(
    "PATCH",
    "/v1/collections/{ref}",
    collections.CollectionChange,
    collections.CollectionWritten,
    "Change a collection",
)
REMOVE_COLLECTION: Final = _write(
    "DELETE", "/v1/collections/{ref}", NoBody, collections.CollectionWritten, "Remove a collection"
)
ADD_TO_COLLECTION: Final = _write(
    "POST",
    "/v1/collections/{ref}/add",
    collections.CollectionMembers,
    collections.MembersWritten,
    "Add files to a collection",
)
CHECK_COLLECTION: Final = _post(
    "/v1/collections/{ref}/check", NoBody, collections.CheckReport, "Check a collection"
)
COMPARE_COLLECTION: Final = _post(
    "/v1/collections/{ref}/diff",
    collections.Sync,
    collections.Difference,
    "Compare a directory with a collection",
)
LIST_COLLECTION_FILES: Final = _get(
    "/v1/collections/{ref}/files",
    collections.CollectionFiles,
    "List the files of a collection",
    "offset",
    "limit",
)
GIVE_COLLECTION: Final = _write(
    "POST",
    "/v1/collections/{ref}/give",
    files.Gift,
    collections.CollectionWritten,
    "Give a collection to another account",
)
QUERY_COLLECTION: Final = _post(
    "/v1/collections/{ref}/query", collections.Query, collections.SearchAnswer, "Search a collection"
)
REMOVE_FROM_COLLECTION: Final = _write(
    "POST",
    "/v1/collections/{ref}/remove",
    collections.CollectionMembers,
    collections.MembersWritten,
    "Remove files from a collection",
)
GET_REINDEX: Final = _get("/v1/reindex", collections.Reindex, "Show the progress of a reindex")
START_REINDEX: Final = _post("/v1/reindex", NoBody, collections.Reindex, "Start a reindex")

# Stored chats.
LIST_CHATS: Final = _get(
    "/v1/chats", stored_chats.StoredChatList, "List chats", "query", "user", "archived", "limit", "offset"
)
EXPORT_CHATS: Final = _post(
    "/v1/chats/export", stored_chats.ChatExport, ForeignReply, "Export chats", slow=True
)
IMPORT_CHATS: Final = _write(
    "POST", "/v1/chats/import", stored_chats.ChatImport, stored_chats.ChatsImported, "Import chats"
)
GET_CHAT: Final = _get("/v1/chats/{id}", stored_chats.StoredChatDetail, "Show a chat", "tree")
REMOVE_CHAT: Final = _write(
    "DELETE", "/v1/chats/{id}", NoBody, stored_chats.StoredChatWritten, "Remove a chat"
)

# Tasks and events.
LIST_NODES: Final = _get("/v1/nodes", nodes.NodeList, "List the nodes of the cluster")
DRAIN_NODE: Final = _write(
    "POST", "/v1/nodes/{node}/drain", nodes.NodeDrain, nodes.NodeWritten, "Drain a node, or end that"
)
REMOVE_NODE: Final = _write("DELETE", "/v1/nodes/{node}", NoBody, nodes.NodeWritten, "Remove a dead node")

LIST_TASKS: Final = _get("/v1/tasks", tasks.TaskList, "List tasks", "chat", "user")
STOP_TASKS: Final = _post("/v1/tasks/stop", tasks.TaskStop, tasks.TasksStopped, "Stop tasks")
FOLLOW_EVENTS: Final = _get("/v1/events", ForeignReply, "Stream events", "user", "chat", "since", "everybody")
LIST_CALLS: Final = _get("/v1/events/calls", events.CallList, "List calls that wait for an answer", "user")
ANSWER_CALL: Final = _post("/v1/events/calls/{id}", events.CallAnswer, events.Call, "Answer a call")

# Functions and tools; `family` is function or tool.
RELOAD_PLUGINS: Final = _post("/v1/plugins/reload", NoBody, plugins.Reloaded, "Reload plugins", slow=True)
LIST_PLUGINS: Final = _get("/v1/plugins/{family}", plugins.PluginList, "List plugins", "kind")
CHECK_PLUGIN: Final = _post(
    "/v1/plugins/{family}/check",
    plugins.PluginSource,
    plugins.PluginReport,
    "Check the source of a plugin",
    slow=True,
)
GET_PLUGIN: Final = _get("/v1/plugins/{family}/{id}", plugins.Plugin, "Show a plugin", "source")
INSTALL_PLUGIN: Final = _write(
    "PUT",
    "/v1/plugins/{family}/{id}",
    plugins.NewPlugin,
    plugins.PluginWritten,
    "Install a plugin",
    slow=True,
)
CHANGE_PLUGIN: Final = _write(
    "PATCH",
    "/v1/plugins/{family}/{id}",
    plugins.PluginChange,
    plugins.PluginWritten,
    "Change the switches of a plugin",
    slow=True,
)
REMOVE_PLUGIN: Final = _write(
    "DELETE", "/v1/plugins/{family}/{id}", NoBody, plugins.PluginWritten, "Remove a plugin"
)
GRANT_PLUGIN: Final = _write(
    "POST",
    "/v1/plugins/{family}/{id}/grant",
    models.Holders,
    plugins.PluginWritten,
    "Grant a right on a tool",
)
REVOKE_PLUGIN: Final = _write(
    "POST",
    "/v1/plugins/{family}/{id}/revoke",
    models.Holders,
    plugins.PluginWritten,
    "Revoke a right on a tool",
)
GET_VALVES: Final = _get("/v1/plugins/{family}/{id}/valves", plugins.ValveList, "Show valves", "reveal")
SET_VALVES: Final = _write(
    "PATCH", "/v1/plugins/{family}/{id}/valves", plugins.ValveChange, plugins.ValvesWritten, "Set valves"
)

# Tool servers.
LIST_TOOL_SERVERS: Final = _get("/v1/tool-servers", tool_servers.ToolServerList, "List tool servers")
ADD_TOOL_SERVER: Final = _write(
    "POST",
    "/v1/tool-servers",
    tool_servers.NewToolServer,
    tool_servers.ToolServerWritten,
    "Add a tool server",
)
GET_TOOL_SERVER: Final = _get("/v1/tool-servers/{id}", tool_servers.ToolServer, "Show a tool server")
REMOVE_TOOL_SERVER: Final = _write(
    "DELETE", "/v1/tool-servers/{id}", NoBody, tool_servers.ToolServerWritten, "Remove a tool server"
)
CHECK_TOOL_SERVER: Final = _post(
    "/v1/tool-servers/{id}/check", NoBody, tool_servers.ToolServerCheck, "Check a tool server", slow=True
)
GRANT_TOOL_SERVER: Final = _write(
    "POST",
    "/v1/tool-servers/{id}/grant",
    models.Holders,
    tool_servers.ToolServerWritten,
    "Grant a right on a tool server",
)
REVOKE_TOOL_SERVER: Final = _write(
    "POST",
    "/v1/tool-servers/{id}/revoke",
    models.Holders,
    tool_servers.ToolServerWritten,
    "Revoke a right on a tool server",
)

# Keys of providers.
REPLACE_PROVIDER_KEY: Final = _write(
    "POST",
    "/v1/providers/{name}/key",
    providers.NewProviderKey,
    providers.ProviderKeyWritten,
    "Replace the key of a provider",
    slow=True,
)

# Audit log.
LIST_AUDIT: Final = _get(
    "/v1/audit",
    audit.AuditRowList,
    "List rows of the audit log",
    *("who", "action", "target", "since", "until", "after", "limit", "newest"),
)
VERIFY_AUDIT: Final = _post(
    "/v1/audit/verify",
    audit.AuditVerification,
    audit.AuditVerdict,
    "Verify the chain of the audit log",
    slow=True,
)
RUN_DOCTOR: Final = Endpoint("GET", "/v1/doctor", NoBody, doctor.DoctorReport, "Check the gateway", slow=True)
COLLECT_GARBAGE: Final = _write(
    "POST",
    "/v1/garbage/collect",
    garbage.GarbageCollection,
    garbage.GarbageReport,
    "Remove what nothing needs",
    slow=True,
)

# Declarative state.
EXPORT_STATE: Final = Endpoint(
    "GET", "/v1/state", NoBody, state.StateExport, "Export the state", ("table",), slow=True
)
APPLY_STATE: Final = _write(
    "POST", "/v1/state/apply", state.StateApply, state.StatePlan, "Apply a document of the state", slow=True
)

ENDPOINTS: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, Endpoint))
"""All rows."""
