"""Declarative state on the wire: the document, the plan of its changes, and the reply to an apply.

The models of the objects are the reference of the document: a field that is absent stays as it is.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from gatewayctl.wire.base import Reply, Request
from gatewayctl.wire.users import RoleName

MAX_DOCUMENT_BYTES: Final = 16 * 1024 * 1024
"""Largest document, as JSON."""

TABLES: Final = (
    "settings",
    "permissions",
    "users",
    "groups",
    "tool_servers",
    "functions",
    "tools",
    "collections",
    "models",
    "providers",
)
"""The tables of a document, in the order of an export."""


def _check_texts(value: Any) -> Any:
    # Otherwise every wrong member is an error of its own, and all are collected.
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not all(isinstance(item, str) for item in members):
        raise PydanticCustomError("texts", "expected texts only")
    return value


Texts = Annotated[list[str], BeforeValidator(_check_texts)]


class UserState(Request):
    """An account; its name in the table is the e-mail address. `password` is that of a new account."""

    name: str | None = None
    role: RoleName | None = None
    active: bool | None = None
    username: str | None = None
    password: str | None = None


class GroupState(Request):
    """A group; `members` are e-mail addresses of those whom administrators add."""

    description: str | None = None
    permissions: dict[str, Any] | None = None
    members: Texts | None = None


class SharedState(Request):
    """The access list: e-mail addresses, `group:NAME`, or `*` for everybody."""

    readers: Texts | None = None
    writers: Texts | None = None


class ToolServerState(SharedState):
    """A tool server; its name in the table is its id. `headers` replaces all headers."""

    url: str | None = None
    type: Literal["openapi", "mcp"] | None = None
    name: str | None = None
    description: str | None = None
    path: str | None = None
    key: str | None = None
    headers: Annotated[dict[str, str], BeforeValidator(_check_texts)] | None = None
    spec: dict[str, Any] | None = None
    functions: Texts | None = None
    timeout: float | None = Field(None, gt=0, le=86_400)
    active: bool | None = None


class FunctionState(Request):
    """A function; its name in the table is its id. `global` applies a filter or action to all models."""

    name: str | None = None
    description: str | None = None
    content: str | None = None
    active: bool | None = None
    is_global: bool | None = Field(None, alias="global")
    valves: dict[str, Any] | None = None


class ToolState(SharedState):
    """A tool; its name in the table is its id. `owner` is the account that a new tool belongs to."""

    name: str | None = None
    description: str | None = None
    content: str | None = None
    active: bool | None = None
    owner: str | None = None
    valves: dict[str, Any] | None = None


class CollectionState(SharedState):
    """A collection without its files; its name in the table is its name, or its id if several have one."""

    name: str | None = None
    description: str | None = None
    owner: str | None = None


class ModelState(SharedState):
    """A record of a model: a custom model with a `base`, or settings of a listed model.

    `knowledge` are names of collections, `tools`, `filters` and `actions` ids.
    """

    name: str | None = None
    base: str | None = None
    active: bool | None = None
    owner: str | None = None
    system: str | None = None
    params: dict[str, Any] | None = None
    knowledge: Texts | None = None
    tools: Texts | None = None
    filters: Texts | None = None
    actions: Texts | None = None
    meta: dict[str, Any] | None = None


class ProviderState(Request):
    """A provider, for reading and comparing; `origin` is settings or database."""

    kind: str | None = None
    base_url: str | None = None
    prefix: str | None = None
    models: Texts | None = None
    active: bool | None = None
    origin: str | None = None


OBJECTS: Final[dict[str, type[Request]]] = {
    "users": UserState,
    "groups": GroupState,
    "tool_servers": ToolServerState,
    "functions": FunctionState,
    "tools": ToolState,
    "collections": CollectionState,
    "models": ModelState,
    "providers": ProviderState,
}
"""The models of the objects, by their table."""

Objects = dict[str, Any]


class StateDocument(Request):
    """The document: tables of objects by name. An absent table is not compared."""

    format: Literal[1]
    settings: Objects | None = None
    permissions: Objects | None = None
    users: Objects | None = None
    groups: Objects | None = None
    tool_servers: Objects | None = None
    functions: Objects | None = None
    tools: Objects | None = None
    collections: Objects | None = None
    models: Objects | None = None
    providers: Objects | None = None


class StateExport(Reply):
    """The state as a document."""

    document: dict[str, Any]


class StateApply(Request):
    """A document to apply. `prune` deletes objects of its tables that it does not name.

    `plan` is the digest of the plan that is expected; any other is refused.
    """

    document: dict[str, Any]
    prune: bool = False
    plan: str | None = None


class StateFieldChange(Reply):
    """A field before and after; None is an absent value, a long value is cut, a secret is masked.

    Of a list that changes, `added` and `removed` have the first hundred texts that one side lacks.
    """

    name: str
    before: Any = None
    after: Any = None
    secret: bool = False
    added: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)


class StateChange(Reply):
    """A change of one object: create, update, delete, or report for a difference that stays."""

    path: str
    table: str
    name: str
    action: str
    fields: list[StateFieldChange] = Field(default_factory=list)


class StatePlan(Reply):
    """The changes in their order; `digest` names the plan, `notes` are sentences about what it leaves out."""

    digest: str
    changes: list[StateChange] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    dry_run: bool = False
