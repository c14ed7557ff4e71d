"""File of SCIM tokens, which the database takes over: one or two words, one per line, the newest first."""

from pathlib import Path
from typing import Final

from gatewayd.errors import ErrorKind, GatewayError

MAX_TOKENS: Final = 2
MAX_FILE_BYTES: Final = 64 * 1024


def read_tokens(path: Path) -> tuple[str, ...]:
    """Return the tokens of a file, () without a file.

    Raises not_configured, naming the file, if it cannot be read or has other content.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise _failed(path, (error.strerror or str(error)).lower()) from error
    tokens = tuple(content.decode("ascii", "replace").split())
    if len(content) > MAX_FILE_BYTES or len(tokens) > MAX_TOKENS or not all(map(_is_word, tokens)):
        raise _failed(path, f"expected at most {MAX_TOKENS} words of ASCII characters, one per line")
    return tokens


def _is_word(token: str) -> bool:
    return all("!" <= character <= "~" for character in token)


def _failed(path: Path, reason: str) -> GatewayError:
    return GatewayError(
        ErrorKind.NOT_CONFIGURED,
        f"cannot read the SCIM token file {path}: {reason}",
        param="scim_token_file",
    )
