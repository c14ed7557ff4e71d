"""Models and who may use them, on the wire."""

from typing import Literal

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

    `available` tells whether a source lists it now; `recorded` whether an access list is kept for it. A model
    without one is for administrators only.
    """

    id: str
    name: str
    owned_by: str = ""
    source: str = ""
    available: bool = True
    recorded: bool = False
    active: bool = True
    grants: list[Grant] = Field(default_factory=list)


class ModelList(Reply):
    """Models by name."""

    models: list[Model]


class ModelWritten(Written, Model):
    """A model after its access list was written."""


class AccessChange(Request):
    """Who gains or loses a right on a model: users (id or e-mail), groups (id or name), or everyone."""

    model: str
    users: list[str] = Field(default_factory=list)
    groups: list[str] = Field(default_factory=list)
    everyone: bool = False
    permission: Right = "read"
