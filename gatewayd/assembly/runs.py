"""Answers to the messages of chats, over the pipeline, the events and the plugins."""

from dataclasses import dataclass

from gatewayd.assembly.live import Live
from gatewayd.assembly.plugins import Extensions
from gatewayd.catalog.service import Catalog
from gatewayd.chat.after import After
from gatewayd.chat.answering import Desk
from gatewayd.chat.background import Background
from gatewayd.chat.interfaces import RunRoom
from gatewayd.chat.pipeline import Pipeline
from gatewayd.chat.response_ids import ResponseIds
from gatewayd.chat.rewriting import Rewriting
from gatewayd.chat.running import RunOptions
from gatewayd.chat.runs import Runs
from gatewayd.chat.stopping import Stopping
from gatewayd.chat.taskmodels import TaskModels
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
