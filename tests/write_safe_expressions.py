"""Write tests/expressions/safe.txt: the expressions of the source that the checker finds safe.

Run from the top of the repository after new expressions: python -m tests.write_safe_expressions
"""

from tests.expressions.finding import Expression, expressions, modules
from tests.expressions.javascript import Translator
from tests.expressions.known import FILE, digest
from tests.expressions.recheck import check


def main() -> None:
    found = [each for each in expressions(modules()) if isinstance(each, Expression)]
    sources = {source: None for each in found for source in Translator(each.pattern, each.flags).written()}
    answers = zip(sources, check([*sources]), strict=True)
    FILE.write_text("".join(sorted(f"{digest(source)}\n" for source, one in answers if one.status == "safe")))


if __name__ == "__main__":
    main()
