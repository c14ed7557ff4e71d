"""Resumable streams and replies to repeated requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from gatewayd.accounts.change_notifier import AccountChange, AccountChangeNotifier
from gatewayd.encryption import SecretKeys
from gatewayd.http.idempotency import IdempotentWrites
from gatewayd.http.public.completions import chat, messages
from gatewayd.http.public.completions.streams import StreamRoutes
from gatewayd.http.public.responses import background as responses
from gatewayd.http.public.responses.frames import ForwardedFrames
from gatewayd.http.responses.frames import StreamOpening
from gatewayd.http.responses.repeatable import RepeatableAnswers
from gatewayd.http.responses.resumable import ResumableAnswers
from gatewayd.http.responses.streams import AnswerStreams, OpenAiFrames
from gatewayd.nodes.messages import NodeMessages
from gatewayd.resumption.idempotency import IdempotentReplies
from gatewayd.resumption.interfaces import StreamLimiter
from gatewayd.resumption.service import ResumableStreams, StreamTimes
from gatewayd.settings import Settings
from gatewayd.storage.resumption.idempotent_requests import TortoiseReplies
from gatewayd.storage.resumption.streams import TortoiseStreams
from gatewayd.tasks import TaskRegistry

EDGES: Final[Mapping[str, StreamOpening]] = {
    chat.PROTOCOL: OpenAiFrames(),
    messages.PROTOCOL: messages.NativeMessageFrames(),
    responses.PROTOCOL: ForwardedFrames(),
}
"""The frames around an answer of each protocol with resumable streams."""


@dataclass(frozen=True, slots=True)
class ResumptionServices:
    """The streams that go on without their client, and the replies of requests with a key."""

    streams: ResumableStreams
    replies: IdempotentReplies

    def configure(self, settings: Settings) -> None:
        """Use the times of the settings."""
        self.streams.configure(stream_times(settings))
        self.replies.configure(settings.idempotency_retention)

    def on_change(self, change: AccountChange) -> None:
        """Stop the streams of an account that has lost its access; those of a removed one are deleted."""
        if change.is_removed and change.user_id is not None:
            self.streams.forget_account(change.user_id)
            self.replies.forget_account(change.user_id)
        elif change.is_out:
            self.streams.stop_account(change.user_id)


@dataclass(frozen=True, slots=True)
class ResumptionEdges:
    """What the routes use: the streams, answers that can be repeated, and writes that are done once."""

    streams: StreamRoutes
    resumable: ResumableAnswers
    repeatable: RepeatableAnswers
    writes: IdempotentWrites


async def open_resumption(
    settings: Settings,
    secret: SecretKeys,
    tasks: TaskRegistry,
    limiter: StreamLimiter,
    changes: AccountChangeNotifier,
    nodes: NodeMessages | None,
    node_id: str = "",
) -> ResumptionServices:
    """Return the services; without a node, streams of the former process are interrupted from now on."""
    services = ResumptionServices(
        ResumableStreams(
            TortoiseStreams(node_id), tasks, limiter, stream_times(settings), nodes=nodes if node_id else None
        ),
        IdempotentReplies(TortoiseReplies(secret), tasks, kept=settings.idempotency_retention),
    )
    if not node_id:
        await services.streams.resume()
    changes.subscribe(services.on_change)
    return services


def make_resumption_edges(
    settings: Settings, services: ResumptionServices, streams: AnswerStreams
) -> ResumptionEdges:
    """Return what the routes of the public application use."""
    resumable = ResumableAnswers(services.streams, streams, head_seconds=settings.stream_head_timeout)
    return ResumptionEdges(
        StreamRoutes(resumable, EDGES),
        resumable,
        RepeatableAnswers(resumable, services.replies),
        IdempotentWrites(services.replies),
    )


def stream_times(settings: Settings) -> StreamTimes:
    """Return the times of streams from the settings."""
    return StreamTimes(settings.stream_unread_timeout, settings.stream_retention)
