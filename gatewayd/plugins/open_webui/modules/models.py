"""`open_webui.models.models` and `open_webui.routers.models`."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.modules.users import id_of


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


class ModelsTable(HostTable):
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


class ModelLists:
    """Lists of models as `/api/models` gives them."""

    def __init__(self, gate: HostBridge) -> None:
        self._gate = gate

    async def get_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return `{"data": [...]}`: the models that a user may use, given as to `ModelFunctions`."""
        return AnswerDict(data=await self._of(_asking(arguments, user)))

    async def get_base_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return those of the models that are not made of another one."""
        models = await self._of(_asking(arguments, user))
        made = await self._gate.reach(self._made)
        return AnswerDict(data=[model for model in models if model["id"] not in made])

    async def _of(self, user: Any) -> list[dict[str, Any]]:
        return [dict(model) for model in await self._gate.reach(self._gate.host.models.list, id_of(user))]

    async def _made(self) -> set[str]:
        """Return the ids of models that are made of another one."""
        records = await self._gate.host.models.list_records(None)
        return {str(record["id"]) for record in records if record.get("base_model_id")}


def _asking(arguments: Sequence[Any], user: Any) -> Any:
    """Return the user who asks: the argument of that name, or the last one that is given by position."""
    if user is None and not arguments:
        raise TypeError("cannot list models: the user is missing")
    return arguments[-1] if user is None else user


class ModelFunctions:
    """What `open_webui.routers.models` has."""

    def __init__(self, gate: HostBridge) -> None:
        self._gate = gate

    async def get_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return `{"items": [...], "total": n}`, the records that a user may see."""
        items = await self._records(_asking(arguments, user))
        return AnswerDict(items=items, total=len(items))

    async def get_base_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerList[ModelModel]:
        """Return those of the records that a user may see which are of models of sources."""
        records = await self._records(_asking(arguments, user))
        return AnswerList(record for record in records if not record.base_model_id)

    async def _records(self, user: Any) -> AnswerList[ModelModel]:
        return ModelModel.each(await self._gate.reach(self._gate.host.models.list_records, id_of(user)))

    async def get_model_by_id(self, id: str, user: Any = None, **_: Any) -> ModelModel | None:
        """Return the record of a model."""
        del user
        return ModelModel.of(await self._gate.reach(self._gate.host.models.find_record, id))


def make_models(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.models`."""
    return {
        "Models": ModelsTable(gate, "open_webui.models.models.Models"),
        "ModelModel": ModelModel,
        "Model": ModelModel,
        "ModelParams": ModelParams,
        "ModelMeta": ModelMeta,
        "ModelForm": ModelForm,
    }


def make_model_routes(gate: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.routers.models`."""
    routes = ModelFunctions(gate)
    return {
        "get_models": routes.get_models,
        "get_base_models": routes.get_base_models,
        "get_model_by_id": routes.get_model_by_id,
    }


def make_model_lists(gate: HostBridge) -> dict[str, Any]:
    """Return what `open_webui.main` has of lists of models."""
    lists = ModelLists(gate)
    return {"get_models": lists.get_models, "get_base_models": lists.get_base_models}
