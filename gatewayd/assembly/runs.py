"""Answers to the messages of chats, over the pipeline, the events and the plugins."""

from dataclasses import dataclass

from gatewayd.assembly.events import Live
from gatewayd.assembly.plugins import Extensions
from gatewayd.catalog.service import Catalog
from gatewayd.pipeline.interfaces import RunRoom
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.responses.ids import ResponseIds
from gatewayd.pipeline.runs.control import Stopping
from gatewayd.pipeline.runs.executor import Desk
from gatewayd.pipeline.runs.interfaces import RunOptions
from gatewayd.pipeline.runs.message_updates import Rewriting
from gatewayd.pipeline.runs.post_processor import After
from gatewayd.pipeline.runs.service import Runs
from gatewayd.pipeline.tasks.background import Background
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.settings import Settings
from gatewayd.storage.response_ids import TortoiseResponseIds
from gatewayd.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Answering:
    """What begins answers, what stops them, the models of the tasks after them, and the ids of responses."""

    runs: Runs
    stopping: Stopping
    models: TaskModels
    response_ids: ResponseIds


def make_answering(
    catalog: Catalog, pipeline: Pipeline, live: Live, extensions: Extensions, tasks: Tasks, room: RunRoom
) -> Answering:
    """Return the services; `Runs.configure` gives them their options."""
    stores, chats, models = live.stores, live.chats.chats, extensions.task_models
    background = Background(models, stores.chats, stores.messages, live.events, live.deferred)
    after = After(
        extensions.outlets,
        background,
        chats,
        Rewriting(stores.chats, stores.rows, live.deferred),
        live.events,
    )
    desk = Desk(
        pipeline, live.answers, stores.messages, stores.effects, live.events, tasks, live.deferred, room
    )
    return Answering(
        runs=Runs(desk, catalog, stores.chats, chats, after),
        stopping=Stopping(tasks, chats),
        models=models,
        response_ids=ResponseIds(TortoiseResponseIds(), live.deferred),
    )


def run_options(settings: Settings) -> RunOptions:
    """Return what the settings say about answers to chats."""
    return RunOptions(
        is_saved_often=settings.enable_realtime_chat_save,
        makes_titles=settings.enable_title_generation,
        makes_tags=settings.enable_tags_generation,
        makes_follow_ups=settings.enable_follow_up_generation,
    )
