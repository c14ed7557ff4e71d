"""gatewayd-signin(7) names every code of a refusal, and the limits of an attempt."""

import re
from pathlib import Path

from gatewayd.accounts.identity.attempts import LIFE_SECONDS
from gatewayd.accounts.identity.records import RefusalCode
from gatewayd.accounts.sessions import CONFIRMATION_SECONDS

PAGE = (Path(__file__).parent.parent / "man" / "gatewayd-signin.7").read_text()


def test_the_page_has_each_refusal_once_in_the_order_of_the_code() -> None:
    listed = PAGE.split('.\\" begin refusals\n')[1].split('.\\" end refusals')[0]
    assert re.findall(r"(?m)^\.It Er (\w+)$", listed) == [code.value for code in RefusalCode]


def test_the_times_of_the_page_are_those_of_the_code() -> None:
    assert (LIFE_SECONDS, CONFIRMATION_SECONDS) == (600, 600)
    assert "An attempt lasts ten minutes" in PAGE
    assert "their password in the last ten minutes" in PAGE
