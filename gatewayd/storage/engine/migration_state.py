"""State of the models between migrations, whose classes are made only for what looks at them.

Tortoise makes the classes of all models anew for the state before each operation, and prepares all of them
for queries after it; few operations look at the state before.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from tortoise.migrations.schema_generator.state import ModelState, State
from tortoise.migrations.schema_generator.state_apps import StateApps
from tortoise.models import Model

from gatewayd.storage.engine.location import APP

Models = dict[tuple[str, str], ModelState]


class MigrationState(State):
    """The models after the operations so far, whose tables are on a connection.

    Operations without a schema editor need no classes: `advance_models` is called before these, and
    `make_classes` before the others.
    """

    def __init__(self, connection: str) -> None:
        super().__init__(models={}, apps=_Classes(default_connections={APP: connection}))
        self._has_classes = True

    def advance_models(self) -> None:
        """Let operations change the models alone, until classes are made."""
        self._has_classes = False

    def make_classes(self) -> None:
        """Make the classes of models that were changed alone."""
        if not self._has_classes:
            self.apps = make_classes(self.models, self.apps)
            self._has_classes = True

    def reload_model(self, app_label: str, model_name: str) -> None:
        """Make the class of a model anew, with those that it is related to."""
        if self._has_classes:
            super().reload_model(app_label, model_name)

    def reload_models(self, model_tuples: Iterable[tuple[str, str]]) -> None:
        """Make the classes of models anew, with those that they are related to."""
        if self._has_classes:
            super().reload_models(model_tuples)

    def clone(self) -> State:
        """Return this state, which later operations do not change."""
        # An operation puts another field in the place of one that it changes.
        models = {
            name: replace(model, options=dict(model.options), fields=dict(model.fields))
            for name, model in self.models.items()
        }
        return _FormerState(models, self.apps)


class _FormerState(State):
    """A state that is over; `apps` makes its classes when they are asked for."""

    def __init__(self, models: Models, present: StateApps) -> None:
        self.models = models
        self._present = present

    @cached_property
    def apps(self) -> StateApps:  # type: ignore[override]
        return make_classes(self.models, self._present)


def make_classes(models: Models, like: StateApps) -> StateApps:
    """Return the classes of models, for the same connections as others; the models stay as they are."""
    # A class changes the fields that it is made of.
    return like.clone(model_states={name: model.clone() for name, model in models.items()})


class _Classes(StateApps):
    """Prepares only those classes for queries that are new or got the other end of a relation."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self._prepared: dict[type[Model], int] = {}

    def _build_initial_querysets(self) -> None:
        fields = {
            model: len(model._meta.fields_map)
            for app in self.apps.values()
            for model in app.values()
            if model._meta._inited
        }
        everything = self.apps
        self.apps = {
            label: {name: model for name, model in app.items() if self._is_changed(model)}
            for label, app in everything.items()
        }
        try:
            super()._build_initial_querysets()
        finally:
            self.apps = everything
        self._prepared = fields

    def _is_changed(self, model: type[Model]) -> bool:
        return self._prepared.get(model) != len(model._meta.fields_map)
