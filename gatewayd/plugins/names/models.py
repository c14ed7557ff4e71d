"""`open_webui.models.models` and `open_webui.routers.models`."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from gatewayd.plugins.names.answers import AnswerDict, AnswerList, AnswerRecord
from gatewayd.plugins.names.gate import Gate, Table, blocking
from gatewayd.plugins.names.users import id_of


class ModelParams(AnswerRecord):
    """The parameters that a model is asked with."""


class ModelMeta(AnswerRecord):
    """What is shown about a model."""

    profile_image_url: str | None = None
    description: str | None = None
    capabilities: dict[str, Any] | None = None


class ModelModel(AnswerRecord):
    """What an administrator keeps about a model."""

    id: str
    user_id: str | None = ""
    base_model_id: str | None = None
    name: str = ""
    params: ModelParams = Field(default_factory=ModelParams)
    meta: ModelMeta = Field(default_factory=ModelMeta)
    access_grants: list[Any] = Field(default_factory=list)
    access_control: dict[str, Any] | None = None
    is_active: bool = True
    updated_at: int = 0
    created_at: int = 0


class ModelForm(AnswerRecord):
    """A model record to insert, which this gateway leaves to its own administration."""

    id: str
    base_model_id: str | None = None
    name: str = ""
    params: ModelParams = Field(default_factory=ModelParams)
    meta: ModelMeta = Field(default_factory=ModelMeta)
    is_active: bool = True


class ModelsTable(Table):
    """`Models`."""

    @blocking
    async def get_model_by_id(self, id: str) -> ModelModel | None:
        """Return the record of a model."""
        return ModelModel.of(await self._host.models.find_record(id))

    @blocking
    async def get_models_by_ids(self, ids: Sequence[str]) -> AnswerList[ModelModel]:
        """Return those records that there are, in the order of their ids."""
        found = [ModelModel.of(await self._host.models.find_record(model_id)) for model_id in ids]
        return AnswerList(model for model in found if model is not None)

    @blocking
    async def get_all_models(self) -> AnswerList[ModelModel]:
        """Return every record."""
        return ModelModel.each(await self._host.models.list_records(None))

    @blocking
    async def get_models(self) -> AnswerList[ModelModel]:
        """Return the records of models that are made of another one."""
        records = ModelModel.each(await self._host.models.list_records(None))
        return AnswerList(model for model in records if model.base_model_id)

    @blocking
    async def get_base_models(self) -> AnswerList[ModelModel]:
        """Return the records of models that sources have."""
        records = ModelModel.each(await self._host.models.list_records(None))
        return AnswerList(model for model in records if not model.base_model_id)

    @blocking
    async def get_models_by_user_id(self, user_id: str, permission: str = "write") -> AnswerList[ModelModel]:
        """Return the records that a user may see."""
        del permission
        return ModelModel.each(await self._host.models.list_records(user_id))


class ModelRoutes:
    """What `open_webui.routers.models` has."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def get_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return `{"items": [...], "total": n}`, the records that a user may see.

        The user is the argument of that name, or the last one that is given by position.
        """
        asking = user if user is not None else arguments[-1]
        records = await self._gate.reach(self._gate.host.models.list_records, id_of(asking))
        items = ModelModel.each(records)
        return AnswerDict(items=items, total=len(items))

    async def get_model_by_id(self, id: str, user: Any = None, **_: Any) -> ModelModel | None:
        """Return the record of a model."""
        del user
        return ModelModel.of(await self._gate.reach(self._gate.host.models.find_record, id))


def make_models(gate: Gate) -> dict[str, Any]:
    """Return the names of `open_webui.models.models`."""
    return {
        "Models": ModelsTable(gate, "open_webui.models.models.Models"),
        "ModelModel": ModelModel,
        "Model": ModelModel,
        "ModelParams": ModelParams,
        "ModelMeta": ModelMeta,
        "ModelForm": ModelForm,
    }


def make_model_routes(gate: Gate) -> dict[str, Any]:
    """Return the names of `open_webui.routers.models`."""
    routes = ModelRoutes(gate)
    return {"get_models": routes.get_models, "get_model_by_id": routes.get_model_by_id}
