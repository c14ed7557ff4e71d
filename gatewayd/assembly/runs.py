"""Runs: answers to stored messages, over the pipeline, the events and the plugins."""

from dataclasses import dataclass

from gatewayd.assembly.accounts import signing_keys
from gatewayd.assembly.events import LiveServices
from gatewayd.assembly.plugins import ExtensionServices
from gatewayd.catalog.service import Catalog
from gatewayd.dialects.responses.sealed import SEAL_USE
from gatewayd.encryption import TextCipher
from gatewayd.nodes.runs import LocalRuns, NodeRuns
from gatewayd.nodes.tasks import NodeTasks
from gatewayd.pipeline.interfaces import RunLimiter
from gatewayd.pipeline.pipeline import Pipeline
from gatewayd.pipeline.responses.archive import ArchiveBounds, ResponseArchive
from gatewayd.pipeline.responses.ids import ResponseIds
from gatewayd.pipeline.runs.control import TaskControl
from gatewayd.pipeline.runs.executor import RunServices
from gatewayd.pipeline.runs.interfaces import RunOptions
from gatewayd.pipeline.runs.message_updates import MessageUpdates
from gatewayd.pipeline.runs.pictures import PictureSource, StoredPictures
from gatewayd.pipeline.runs.post_processor import PostProcessing
from gatewayd.pipeline.runs.service import RunService
from gatewayd.pipeline.tasks.background import BackgroundWork
from gatewayd.pipeline.tasks.models import TaskModels
from gatewayd.settings import Settings
from gatewayd.storage.responses.ids import TortoiseResponseIds
from gatewayd.storage.responses.stored import TortoiseResponses
from gatewayd.tasks import TaskRegistry


@dataclass(frozen=True, slots=True)
class AnswerServices:
    """Runs, their control, the models of their tasks, and the stored responses with their ids."""

    runs: RunService
    stopping: TaskControl
    models: TaskModels
    response_ids: ResponseIds
    responses: ResponseArchive
    response_cipher: TextCipher


def make_answer_services(
    catalog: Catalog,
    pipeline: Pipeline,
    live: LiveServices,
    extensions: ExtensionServices,
    tasks: TaskRegistry,
    room: RunLimiter,
    files: PictureSource,
    settings: Settings,
    register: LocalRuns | NodeRuns,
) -> AnswerServices:
    """Return the services, with the options of the settings."""
    stores, chats, models = live.stores, live.chats.chats, extensions.task_models
    background = BackgroundWork(models, stores.chats, stores.messages, live.events, live.deferred, register)
    after = PostProcessing(
        extensions.outlets,
        background,
        chats,
        MessageUpdates(stores.chats, stores.rows, live.deferred),
        live.events,
    )
    desk = RunServices(
        pipeline,
        live.answers,
        stores.messages,
        stores.effects,
        live.events,
        tasks,
        live.deferred,
        room,
        register,
        StoredPictures(files),
    )
    runs = RunService(desk, catalog, stores.chats, chats, after)
    runs.configure(run_options(settings))
    return AnswerServices(
        runs=runs,
        stopping=TaskControl(tasks, chats, NodeTasks(register, live.messages, tasks)),
        models=models,
        response_ids=ResponseIds(TortoiseResponseIds(), live.deferred),
        responses=ResponseArchive(TortoiseResponses(), archive_bounds(settings)),
        response_cipher=TextCipher(signing_keys(settings), SEAL_USE),
    )


def archive_bounds(settings: Settings) -> ArchiveBounds:
    """Return the bounds of stored responses from the settings."""
    return ArchiveBounds(int(settings.stored_response_lifetime), int(settings.stored_response_limit))


def run_options(settings: Settings) -> RunOptions:
    """Return the options of runs from the settings."""
    return RunOptions(
        is_saved_often=settings.enable_realtime_chat_save,
        makes_titles=settings.enable_title_generation,
        makes_tags=settings.enable_tags_generation,
        makes_follow_ups=settings.enable_follow_up_generation,
    )
