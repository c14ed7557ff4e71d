"""Models, the records that administrators keep about them, and who may use them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

EVERYBODY: Final = "*"
"""The `principal_id` of a grant to everybody."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as a source lists it (2.4).

    `id` is what callers send (with the source's prefix), `upstream_id` what the source itself calls it.
    `detail` is put into the listing as it is, for example `{"openai": {...}}` (peer-compatible extra fields).
    """

    id: str
    name: str
    owned_by: str
    source: str
    upstream_id: str
    created: int = 0
    connection_type: str = "external"
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grant:
    """One row of a resource's access list: `principal_id` is an id or `*`; permission is read or write."""

    principal_type: str
    principal_id: str
    permission: str


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """What an administrator keeps about a model: a new model on top of another, or access to a listed one."""

    id: str
    user_id: str
    name: str
    base_model_id: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    is_active: bool = True
    grants: tuple[Grant, ...] = ()
    updated_at: int = 0
    created_at: int = 0
