"""Repeated runs until a stop is requested."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gatewayctl.failures import TRY_LATER, CommandError
from gatewayctl.ingest.records import Report, What
from gatewayctl.ingest.scan import Scan
from gatewayctl.ingest.stop import Stop, StoppedError

# Temporary failures: the run ends, and the next one may succeed.
PASSING: Final = frozenset({"unreachable", "unavailable", "rate_limited", "timeout"})


def later(error: CommandError, report: Report) -> CommandError:
    """Return the failure of a run; a temporary one has the exit code TRY_LATER."""
    if error.kind not in PASSING:
        return error
    stays = f"; {report.uploaded} files were uploaded and stay" if report.uploaded else ""
    return CommandError(
        error.kind,
        f"{error.message}{stays}",
        hint=error.hint,
        param=error.param,
        request_id=error.request_id,
        exit_code=TRY_LATER,
    )


def stopped(report: Report) -> CommandError:
    """Return the failure of a run that a signal stopped."""
    return CommandError(
        "stopped",
        f"stopped: {report.uploaded} files were uploaded and stay; the next run goes on from there",
    )


@dataclass(slots=True)
class Watch:
    """Scans a directory again and again; `tell` receives each report with something new."""

    scan: Callable[[], Scan]
    run: Callable[[Scan], Report]
    tell: Callable[[Report], None]
    complain: Callable[[CommandError], None]
    _last: Scan | None = None
    _failures: frozenset[tuple[str, str | None]] | None = None
    _complaint: str = ""

    def go_on(self, stop: Stop, interval: float) -> None:
        """Return when the stop is requested; wait for a daemon that cannot be reached."""
        try:
            while True:
                self._look()
                stop.sleep(interval)
        except StoppedError:
            return

    def _look(self) -> None:
        try:
            scan = self.scan()
            if scan == self._last:
                return
            report = self.run(scan)
        except CommandError as error:
            self._complain(error)
            return
        self._complaint = ""
        # After an incomplete run the same scan is processed again.
        self._last = None if report.is_partial or report.count(What.PENDING) else scan
        failures = frozenset((outcome.path, outcome.error) for outcome in report.failures())
        is_new = failures != self._failures
        is_work = any(report.count(what) for what in (What.ADDED, What.CHANGED, What.REMOVED))
        self._failures = failures
        if is_new or is_work:
            self.tell(report)

    def _complain(self, error: CommandError) -> None:
        """Print a temporary failure, once in a row; raise any other."""
        if error.exit_code != TRY_LATER:
            raise error
        self._last = None
        if error.message != self._complaint:
            self.complain(error)
        self._complaint = error.message
