"""What the services about the files of collections share."""

from dataclasses import dataclass

from gatewayd import ids
from gatewayd.commits import Transactor
from gatewayd.ingest.files import Files
from gatewayd.knowledge.access import CollectionAccess
from gatewayd.knowledge.collections import Collections
from gatewayd.knowledge.freshness import Freshness
from gatewayd.knowledge.interfaces import CollectionStore


@dataclass(frozen=True, slots=True)
class Holdings:
    """The collections and files, who may use them, and what is told of their changes."""

    collections: Collections
    store: CollectionStore
    files: Files
    access: CollectionAccess
    transactor: Transactor
    freshness: Freshness
    clock: ids.Clock = ids.now
