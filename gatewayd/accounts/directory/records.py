"""Records of a directory."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """The entry of a person whose password the directory accepted.

    `id` is the entryUUID or the objectGUID in its canonical form, else the normalised DN. `groups` are the
    values of the first relative name of each group. They are empty for an entry without the attribute:
    an attribute of an entry has at least one value (RFC 4512, 2.3), so that none means no group.
    """

    id: str
    dn: str
    name: str = ""
    email: str = ""
    groups: tuple[str, ...] = ()
