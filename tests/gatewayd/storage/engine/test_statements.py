import pytest

from gatewayd.storage.engine.database import Database
from gatewayd.storage.engine.statements import SqlStatement, contains_pattern, like_pattern, storable_ids
from gatewayd.storage.tables.documents import FileRow


def test_patterns_take_the_signs_of_like_for_text() -> None:
    assert contains_pattern("50%_a\\B") == "%50\\%\\_a\\\\b%"
    assert like_pattern("A%*?_**b") == "a\\%%_\\_%b"


def test_a_text_that_no_column_holds_has_no_pattern() -> None:
    assert contains_pattern("\x00") is None
    assert like_pattern("\ud800*") is None


def test_only_ids_that_a_row_could_have_are_possible() -> None:
    assert storable_ids(FileRow, ["b", "a", "b", "\x00", "x" * 65]) == ["b", "a"]


@pytest.mark.parametrize("count", [0, 1, 40_000])
async def test_any_number_of_texts_is_one_parameter(database: Database, count: int) -> None:
    statement = SqlStatement(FileRow._meta.db)
    texts = ['"', "é", *(str(number) for number in range(count))]
    among = statement.among(texts)
    assert len(statement.values) == 1
    query = (
        f"SELECT COUNT(*) AS n FROM (SELECT CAST('é' AS TEXT) AS t UNION SELECT 'no') AS x WHERE t {among}"
    )
    assert await statement.run(query) == [{"n": 1}]


@pytest.mark.parametrize(("pattern", "fits"), [("a_c", True), ("a\\_c", False), ("%b%", True), ("b", False)])
async def test_like_obeys_escapes(database: Database, pattern: str, fits: bool) -> None:
    statement = SqlStatement(FileRow._meta.db)
    rows = await statement.run(
        f"SELECT 1 AS n FROM (SELECT 'abc' AS t) AS x WHERE t {statement.like(pattern)}"
    )
    assert bool(rows) is fits


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [(0, None, 3), (1, 1, 1), (3, None, 0), (0, 0, 0), (-5, -5, 0), (2**70, 2**70, 0)],
)
async def test_a_window_is_a_page(database: Database, offset: int, limit: int | None, expected: int) -> None:
    statement = SqlStatement(FileRow._meta.db)
    query = "SELECT 1 AS n UNION SELECT 2 UNION SELECT 3 ORDER BY n"
    assert len(await statement.run(query + statement.window(offset, limit))) == expected


def test_a_copy_goes_its_own_way(database: Database) -> None:
    statement = SqlStatement(FileRow._meta.db)
    statement.bind(1)
    copy = statement.copy()
    statement.bind(2)
    assert copy.values == [1]
