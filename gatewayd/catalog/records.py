"""Records of models, of administrators' settings for them, and of access grants."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

FAMILY: Final = "family"
"""Member of a record's `meta` with the canonical id of the model."""

RULES: Final = "provider_rules"
"""Member of a record's `meta` with rules for its requests, by their names in the settings."""

EVERYBODY: Final = "*"
"""The `principal_id` of a grant to everybody."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as a source lists it.

    `id` is the id for callers (with the source's prefix), `upstream_id` the source's own id. `detail` is
    copied into the listing, for example `{"openai": {...}}` (extra fields of Open WebUI). `family` is the
    canonical id of the model, "" if unknown; `rules` are what its record adds to the rules of the family.
    `maker` is the hosted maker that answers, "" if it is unknown or an engine that people run themselves.
    """

    id: str
    name: str
    owned_by: str
    source: str
    upstream_id: str
    created: int = 0
    connection_type: str = "external"
    detail: Mapping[str, Any] = field(default_factory=dict)
    family: str = ""
    rules: Mapping[str, Any] = field(default_factory=dict)
    maker: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """One row of a resource's access list: `principal_id` is an id or `*`; `permission` is read or write."""

    principal_type: str
    principal_id: str
    permission: str


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """An administrator's record of a model: a custom model with a base, or settings of a listed model."""

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

    @property
    def family(self) -> str:
        """The canonical id of the model, which its own id may hide; "" if the record gives none."""
        family = self.meta.get(FAMILY) if self.meta else None
        return family if isinstance(family, str) else ""

    @property
    def rules(self) -> Mapping[str, Any]:
        """What the record adds to the rules of the family (gatewayd-dialects(7), PROVIDER RULES)."""
        rules = self.meta.get(RULES) if self.meta else None
        return rules if isinstance(rules, dict) else {}
