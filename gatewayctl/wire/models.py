"""Models and their access lists on the wire."""

from typing import Any, Literal

from pydantic import Field

from gatewayctl.wire.base import Reply, Request, Written

Right = Literal["read", "write"]


class Grant(Reply):
    """One row of an access list; `principal` is an e-mail, a group's name, or `*` for every user."""

    principal_type: str
    principal_id: str
    principal: str
    permission: str


class Model(Reply):
    """A model that a source lists, or that only has a record.

    `available`: a source lists it now; `recorded`: it has an access list. A model without one is for
    administrators only. `family` is the canonical id that decides the rules of its requests. A custom model
    has the id of its base model as `base`; `system`, `params` and the rest are its stored fields, `knowledge`
    the names of its collections.
    """

    id: str
    name: str
    owned_by: str = ""
    source: str = ""
    available: bool = True
    recorded: bool = False
    active: bool = True
    grants: list[Grant] = Field(default_factory=list)
    base: str | None = None
    family: str = ""
    system: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    knowledge: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    filters: list[str] = Field(default_factory=list)
    actions: list[str] = Field(default_factory=list)


class ModelList(Reply):
    """Models by name; `warnings` are the last problems of their sources."""

    models: list[Model]
    warnings: list[str] = Field(default_factory=list)


class ModelWritten(Written, Model):
    """A model after a write."""


class Holders(Request):
    """Principals that gain or lose a right: users (id or e-mail), groups (id or name), or everyone."""

    users: list[str] = Field(default_factory=list)
    groups: list[str] = Field(default_factory=list)
    everyone: bool = False
    permission: Right = "read"


class AccessChange(Holders):
    """Principals that gain or lose a right on a model."""

    model: str


class NewModel(Request):
    """A custom model to create over the model `base`.

    `knowledge` are collections (id or name), `tools`, `filters` and `actions` ids of plugins. `params` go to
    the model's source with every request; `system` is its prompt.
    """

    id: str
    base: str
    name: str | None = None
    system: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    knowledge: list[str] = Field(default_factory=list)
    tools: list[str] = Field(default_factory=list)
    filters: list[str] = Field(default_factory=list)
    actions: list[str] = Field(default_factory=list)


class ModelChange(Request):
    """A change of the record of the model `id`; an empty `family` removes the stored one."""

    id: str
    family: str | None = None
