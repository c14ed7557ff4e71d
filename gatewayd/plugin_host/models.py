"""Implementation of `HostModels`: models for plugins, and the records that administrators keep of them."""

from collections.abc import Mapping, Sequence

from gatewayd.catalog.service import Catalog
from gatewayd.pipeline.documents.model_info import describe_model, render_model, render_record
from gatewayd.plugin_host.actors import PluginActors
from gatewayd.plugins.interfaces import Record


class ModelsForPlugins:
    """A `plugins.interfaces.HostModels` over the catalogue."""

    def __init__(self, catalog: Catalog, actors: PluginActors) -> None:
        self._catalog = catalog
        self._actors = actors

    async def find_record(self, model_id: str) -> Record | None:
        """Return the record of a model; None without one."""
        record = self._catalog.find_record(model_id)
        return None if record is None else render_record(record)

    async def list_records(self, user_id: str | None) -> Sequence[Record]:
        """Return all records, sorted by id, or those of models that a user may use."""
        records = self._catalog.list_records()
        if user_id is None:
            return [render_record(record) for record in records]
        usable = {model["id"] for model in await self.list(user_id)}
        return [render_record(record) for record in records if record.id in usable]

    async def list(self, user_id: str) -> Sequence[Record]:
        """Return the models that a user may use, sorted by name, in the format of the model list."""
        actor = await self._actors.find_reader(user_id)
        if actor is None:
            return []
        models = await self._catalog.list(actor)
        return [
            render_model(model, self._catalog.find_record(model.id), is_whole=actor.is_admin)
            for model in models
        ]

    async def all(self) -> Mapping[str, Record]:
        """Return every model by id, without a check of its access list."""
        models = await self._catalog.list_all()
        return {model.id: describe_model(model, self._catalog.find_record(model.id)) for model in models}
