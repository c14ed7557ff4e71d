import pytest

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.storage.engine import damage
from gatewayd.storage.engine.damage import DatabaseDamage


def test_the_first_damage_is_told_until_it_is_forgotten() -> None:
    known = DatabaseDamage()
    known.refuse()
    known.note("the database's file is damaged")
    known.note("something else")
    with pytest.raises(GatewayError, match=r"^the database's file is damaged$") as caught:
        known.refuse()
    assert caught.value.kind is ErrorKind.INTERNAL
    known.clear()
    known.refuse()


def test_damage_belongs_to_the_database_of_the_context() -> None:
    first, second = damage.begin(), damage.begin()
    damage.note("it is damaged")
    assert (first.sentence, second.sentence) == (None, "it is damaged")
