"""Wait until the daemon has processed files."""

from collections.abc import Iterator, Sequence
from typing import Final

from gatewayctl.client import ControlClient
from gatewayctl.ingest.stop import Stop
from gatewayctl.wire import routes
from gatewayctl.wire.files import File, Wait

PENDING: Final = "pending"
# Maximum number of files in one request, the first uploaded first, in the order of processing.
AT_ONCE: Final = 100
# A short time, so that signals and progress are noticed.
SECONDS: Final = 2


def settled(client: ControlClient, file_ids: Sequence[str], stop: Stop) -> Iterator[tuple[str, File | None]]:
    """Yield each file when it is no longer pending, None for a removed one; raises StoppedError."""
    rest = list(dict.fromkeys(file_ids))
    while rest:
        stop.check()
        asked = rest[:AT_ONCE]
        answer = client.call(routes.WAIT_FOR_FILES, body=Wait(ids=asked, seconds=SECONDS))
        known = {file.id: file for file in answer.files}
        done = [each for each in asked if each not in known or known[each].status != PENDING]
        yield from ((each, known.get(each)) for each in done)
        rest = [each for each in rest if each not in set(done)]
