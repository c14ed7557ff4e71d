"""gatewayd as it is, but for collections of any size having graphs and checkpoints: run with `python -m`."""

from functools import partial
from unittest.mock import patch

from gatewayd import __main__
from gatewayd.vectors.index import local_index
from gatewayd.vectors.index.scope_index import IndexRules

RULES = partial(IndexRules, threshold=60, tail=8, changes=20, idle=0.5)

if __name__ == "__main__":
    with patch.object(local_index, "IndexRules", RULES):
        __main__.main()
