"""Prompts on the terminal, and secrets and texts from files or standard input."""

import getpass
import sys
from pathlib import Path
from typing import Final

from gatewayctl.failures import CommandError
from gatewayctl.sanitize import clean

FROM_FILE: Final = "@"


def usage(message: str, param: str | None = None) -> CommandError:
    """Return the failure for an invalid command line."""
    return CommandError("usage", message, hint="", param=param)


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation of a destructive command; without a terminal `--yes` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise usage(f"cannot ask {question!r} without a terminal: add --yes", param="--yes")
    sys.stderr.write(f"{clean(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise CommandError("cancelled", "not confirmed: nothing was changed")


def read_whole(source: str, name: str, param: str) -> str:
    """Return the text in a file, or on standard input for `-`; `name` stands for it in failures."""
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "").lower() if isinstance(error, OSError) else "it is not UTF-8 text"
        raise usage(f"cannot read {name}: {reason}", param=param) from error


def read_secret(source: str, option: str) -> str:
    """Return the secret in a file, or on standard input for `-`, without the newline at its end."""
    secret = read_whole(source, f"{option} {source}", option).removesuffix("\n").removesuffix("\r")
    if not secret:
        raise usage(f"cannot use {option} {source}: it is empty", param=option)
    return secret


def read_text(given: str, option: str) -> str:
    """Return a text given literally, or as `@FILE` or `@-`; see `read_secret`."""
    return read_secret(given.removeprefix(FROM_FILE), option) if is_in_file(given) else given


def is_in_file(given: str) -> bool:
    """Return whether a text is given as the name of a file."""
    return given.startswith(FROM_FILE)


def ask_password() -> str:
    """Ask for a new password twice, without showing it."""
    if not sys.stdin.isatty():
        raise usage("cannot ask for the password without a terminal: add --password-file", "--password-file")
    password = getpass.getpass("New password: ", stream=sys.stderr)
    if getpass.getpass("Again: ", stream=sys.stderr) != password:
        raise CommandError("cancelled", "the two passwords differ: nothing was changed")
    if not password:
        raise CommandError("cancelled", "the password is empty: nothing was changed")
    return password
