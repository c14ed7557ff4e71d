"""A plugin of pytest: with `--nodes 3` each daemon of a test is three nodes behind a balancer.

python -m pytest -p tests.fakes.cluster.plugin --nodes 3 tests/blackbox/test_credentials.py
"""

import pytest

from tests.fakes.cluster.balanced import running_balanced
from tests.fakes.daemons.daemon import Starting


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option."""
    parser.addoption("--nodes", type=int, default=1, help="Number of nodes behind a balancer (default 1).")


def pytest_configure(config: pytest.Config) -> None:
    """Put several nodes in the place of each daemon."""
    if config.option.nodes > 1:
        Starting.run = staticmethod(running_balanced(config.option.nodes))
