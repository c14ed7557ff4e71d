"""Failures of commands: a sentence, a hint and an exit code for each kind.

The kinds are those of the daemon and seven of gatewayctl: `cancelled`, `usage`, `system`, `unreachable`,
`protocol_mismatch`, `busy` and `stopped`.
"""

from dataclasses import dataclass
from typing import Final

from gatewayctl.sanitize import as_json, clean

OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
DENIED: Final = 4
NOT_FOUND: Final = 5
CONFLICT: Final = 6
PROTOCOL: Final = 7
TRY_LATER: Final = 75
INTERRUPTED: Final = 130
# Only `ingest` uses these; for it a daemon that does not answer is TRY_LATER.
PARTIAL: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Exit code of a kind, its meaning, and a hint for the user ("" for none)."""

    exit_code: int
    meaning: str
    hint: str = ""


# In the order of the manual.
TABLE: Final[dict[str, Row]] = {
    "invalid_request": Row(FAILURE, "a value was refused; the message names it"),
    "empty_content": Row(FAILURE, "a file has no text"),
    "too_large": Row(FAILURE, "something is over its limit"),
    "rate_limited": Row(FAILURE, "too many requests, here or at a provider", "try again later"),
    "upstream_failed": Row(
        FAILURE,
        "a provider answered with an error or an unusable reply",
        "gatewayctl health shows every source",
    ),
    "upstream_unreachable": Row(
        FAILURE, "a provider could not be reached", "gatewayctl health shows every source"
    ),
    "plugin_failed": Row(FAILURE, "a plugin raised", "the daemon's log has the details"),
    "not_configured": Row(FAILURE, "the feature needs a setting that is not set", "see gatewayd.toml(5)"),
    "internal": Row(FAILURE, "the gateway is at fault", "the daemon's log has the details"),
    "unavailable": Row(FAILURE, "the daemon cannot take the request now", "try again"),
    "timeout": Row(FAILURE, "no answer came in time", "try again"),
    "cancelled": Row(FAILURE, "a question at the terminal was answered with no"),
    "usage": Row(USAGE, "the command line is wrong", "see gatewayctl --help"),
    "system": Row(FAILURE, "the operating system refused something, for example a full disk"),
    "unreachable": Row(
        UNREACHABLE,
        "no daemon answers on the control socket",
        "start gatewayd, or name its socket (--socket)",
    ),
    "unauthenticated": Row(DENIED, "the caller could not be identified"),
    "forbidden": Row(
        DENIED,
        "you may not do this",
        "run as root, as the daemon's user, or as a member of the daemon's control group",
    ),
    "not_found": Row(NOT_FOUND, "the object does not exist"),
    "conflict": Row(CONFLICT, "the name is taken, or the state does not allow the change"),
    "protocol_mismatch": Row(
        PROTOCOL, "the daemon speaks another protocol", "install the same version of gatewayctl and gatewayd"
    ),
    "busy": Row(TRY_LATER, "another run has the directory", "try again when it has ended"),
    "stopped": Row(INTERRUPTED, "a signal ended the run; the next one goes on from there"),
}


class CommandError(Exception):
    """A command failed; `kind` is a row of `TABLE`, or one of a newer daemon, which exits with 1.

    A command may give a kind another exit code.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.request_id = request_id
        row = TABLE.get(kind, Row(FAILURE, ""))
        self.hint = row.hint if hint is None else hint
        self.exit_code = row.exit_code if exit_code is None else exit_code

    def sentence(self) -> str:
        """Return the failure for people: one line, and a second one with the hint if there is one."""
        lines = f"gatewayctl: {clean(self.message)}"
        return f"{lines}\n  hint: {self.hint}" if self.hint else lines

    def as_json(self) -> str:
        """Return the failure for programs: one JSON object on one line."""
        error = {
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint or None,
            "param": self.param,
            "request_id": self.request_id,
        }
        return as_json({"error": error})


def unsendable(reason: str = "it is not UTF-8 text") -> CommandError:
    """Return the failure for an argument or file content that no request can contain."""
    return CommandError("usage", f"cannot send what was given: {reason}", hint="")
