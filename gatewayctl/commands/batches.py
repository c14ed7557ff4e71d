"""`gatewayctl batch`: files of requests that run at low priority."""

from typing import Annotated

import typer

from gatewayctl.command import Noun, Session
from gatewayctl.render import Output, View
from gatewayctl.wire import routes
from gatewayctl.wire.batches import Batch

noun = Noun("Batches: files of requests that run at low priority.")

BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="Id of the batch, as batch list shows it.")]

ROWS: View[Batch] = View(
    name=lambda batch: batch.id,
    columns={
        "ID": lambda batch: batch.id,
        "USER": lambda batch: batch.user or batch.user_id,
        "ENDPOINT": lambda batch: batch.endpoint,
        "STATUS": lambda batch: batch.status,
        "REQUESTS": lambda batch: batch.total,
        "DONE": lambda batch: batch.completed,
        "FAILED": lambda batch: batch.failed,
        "CREATED": lambda batch: batch.created_at,
    },
)
DETAILS: View[Batch] = View(
    name=lambda batch: batch.id,
    columns={
        **ROWS.columns,
        "ENDED": lambda batch: batch.ended_at,
        "INPUT": lambda batch: batch.input_file_id,
        "OUTPUT": lambda batch: batch.output_file_id,
        "ERRORS": lambda batch: batch.error_file_id,
        "FAULTS": lambda batch: "; ".join(batch.errors),
    },
)


@noun.verb("list", "gatewayctl batch list", "gatewayctl batch list --user ada@example.org -o name")
def list_batches(
    session: Session,
    user: Annotated[
        str | None, typer.Option("--user", metavar="USER", help="List only the batches of this user.")
    ] = None,
) -> None:
    """List batches, newest first, at most 1000."""
    session.show_all(session.client.call(routes.LIST_BATCHES, user=user).batches, ROWS)


@noun.verb("show", "gatewayctl batch show batch_0198c0f2a4b07c3e9d1f5a6b7c8d9e0f")
def show(session: Session, batch: BatchId) -> None:
    """Show a batch."""
    session.show(session.client.call(routes.SHOW_BATCH, batch), DETAILS)


@noun.verb("cancel", "gatewayctl batch cancel batch_0198c0f2a4b07c3e9d1f5a6b7c8d9e0f")
def cancel(session: Session, batch: BatchId) -> None:
    """Cancel a batch; the requests that run end, and their answers are kept."""
    cancelled = session.client.call(routes.CANCEL_BATCH, batch)
    if session.output is Output.TABLE:
        session.renderer.say(f"cancelling {cancelled.id}")
        return
    session.show(cancelled, DETAILS)
