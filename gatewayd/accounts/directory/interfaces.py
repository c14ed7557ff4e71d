"""Interface of a directory."""

from typing import Protocol

from gatewayd.accounts.directory.records import DirectoryEntry


class Directory(Protocol):
    """A directory that checks passwords."""

    async def authenticate(self, name: str, password: str) -> DirectoryEntry | None:
        """Return the entry of a person, None for an unknown or ambiguous name and for a wrong password.

        The password is neither empty nor contains NUL. Raises unavailable if the directory does not answer
        in time, cannot be verified or refuses the service.
        """
        ...
