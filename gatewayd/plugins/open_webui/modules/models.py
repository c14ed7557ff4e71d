"""Implementation of `open_webui.models.models` and `open_webui.routers.models`."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from gatewayd.plugins.open_webui.awaitable_records import AnswerDict, AnswerList, AnswerRecord
from gatewayd.plugins.open_webui.host_bridge import HostBridge, HostTable, blocking
from gatewayd.plugins.open_webui.modules.users import id_of


class ModelParams(AnswerRecord):
    """Parameters of the requests to a model."""


class ModelMeta(AnswerRecord):
    """Display metadata of a model."""

    profile_image_url: str | None = None
    description: str | None = None
    capabilities: dict[str, Any] | None = None


class ModelModel(AnswerRecord):
    """The record that an administrator keeps of a model."""

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
    """A model record; only administrators can insert one, through the gateway."""

    id: str
    base_model_id: str | None = None
    name: str = ""
    params: ModelParams = Field(default_factory=ModelParams)
    meta: ModelMeta = Field(default_factory=ModelMeta)
    is_active: bool = True


class ModelsTable(HostTable):
    """The class of `Models`."""

    @blocking
    async def get_model_by_id(self, id: str) -> ModelModel | None:
        """Return the record of a model; None without one."""
        return ModelModel.of(await self._host.models.find_record(id))

    @blocking
    async def get_models_by_ids(self, ids: Sequence[str]) -> AnswerList[ModelModel]:
        """Return the existing records among `ids`, in that order."""
        found = [ModelModel.of(await self._host.models.find_record(model_id)) for model_id in ids]
        return AnswerList(model for model in found if model is not None)

    @blocking
    async def get_all_models(self) -> AnswerList[ModelModel]:
        """Return every record."""
        return ModelModel.each(await self._host.models.list_records(None))

    @blocking
    async def get_models(self) -> AnswerList[ModelModel]:
        """Return the records of custom models."""
        records = ModelModel.each(await self._host.models.list_records(None))
        return AnswerList(model for model in records if model.base_model_id)

    @blocking
    async def get_base_models(self) -> AnswerList[ModelModel]:
        """Return the records of models of sources."""
        records = ModelModel.each(await self._host.models.list_records(None))
        return AnswerList(model for model in records if not model.base_model_id)

    @blocking
    async def get_models_by_user_id(self, user_id: str, permission: str = "write") -> AnswerList[ModelModel]:
        """Return the records of models that a user may use."""
        del permission
        return ModelModel.each(await self._host.models.list_records(user_id))


class ModelLists:
    """The model lists of `open_webui.main`, in the format of `/api/models`."""

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge

    async def get_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return `{"data": [...]}` with the models that a user may use."""
        return AnswerDict(data=await self._usable(_user_argument(arguments, user)))

    async def get_base_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return the same without custom models."""
        models = await self._usable(_user_argument(arguments, user))
        custom_ids = await self._bridge.reach(self._custom_ids)
        return AnswerDict(data=[model for model in models if model["id"] not in custom_ids])

    async def _usable(self, user: Any) -> list[dict[str, Any]]:
        return [dict(model) for model in await self._bridge.reach(self._bridge.host.models.list, id_of(user))]

    async def _custom_ids(self) -> set[str]:
        """Return the ids of custom models."""
        records = await self._bridge.host.models.list_records(None)
        return {str(record["id"]) for record in records if record.get("base_model_id")}


def _user_argument(arguments: Sequence[Any], user: Any) -> Any:
    """Return the user of a call: the argument `user`, or the last positional argument."""
    if user is None and not arguments:
        raise TypeError("cannot list models: the user is missing")
    return arguments[-1] if user is None else user


class ModelFunctions:
    """The functions of `open_webui.routers.models`."""

    def __init__(self, bridge: HostBridge) -> None:
        self._bridge = bridge

    async def get_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerDict[str, Any]:
        """Return `{"items": [...], "total": n}` with the records of models that a user may use."""
        items = await self._records(_user_argument(arguments, user))
        return AnswerDict(items=items, total=len(items))

    async def get_base_models(self, *arguments: Any, user: Any = None, **_: Any) -> AnswerList[ModelModel]:
        """Return the records of the models of sources that a user may use."""
        records = await self._records(_user_argument(arguments, user))
        return AnswerList(record for record in records if not record.base_model_id)

    async def _records(self, user: Any) -> AnswerList[ModelModel]:
        return ModelModel.each(await self._bridge.reach(self._bridge.host.models.list_records, id_of(user)))

    async def get_model_by_id(self, id: str, user: Any = None, **_: Any) -> ModelModel | None:
        """Return the record of a model; None without one."""
        del user
        return ModelModel.of(await self._bridge.reach(self._bridge.host.models.find_record, id))


def make_models(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.models.models`."""
    return {
        "Models": ModelsTable(bridge, "open_webui.models.models.Models"),
        "ModelModel": ModelModel,
        "Model": ModelModel,
        "ModelParams": ModelParams,
        "ModelMeta": ModelMeta,
        "ModelForm": ModelForm,
    }


def make_model_routes(bridge: HostBridge) -> dict[str, Any]:
    """Return the names of `open_webui.routers.models`."""
    routes = ModelFunctions(bridge)
    return {
        "get_models": routes.get_models,
        "get_base_models": routes.get_base_models,
        "get_model_by_id": routes.get_model_by_id,
    }


def make_model_lists(bridge: HostBridge) -> dict[str, Any]:
    """Return the model lists of `open_webui.main`."""
    lists = ModelLists(bridge)
    return {"get_models": lists.get_models, "get_base_models": lists.get_base_models}
