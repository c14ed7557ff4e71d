"""gatewayd as it is, but for collections of any size having graphs and checkpoints: run with `python -m`."""

from functools import partial
from unittest.mock import patch

from gatewayd import __main__
from gatewayd.vectors.index import local_index
from gatewayd.vectors.index.scope_index import Rules

RULES = partial(Rules, threshold=60, tail=8, changes=20, idle=0.5)

if __name__ == "__main__":
    with patch.object(local_index, "Rules", RULES):
        __main__.main()
