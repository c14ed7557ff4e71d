from pathlib import Path

from gatewayd.errors import GatewayError, Kind
from gatewayd.settings.origins import from_environment, from_file
from gatewayd.settings.problems import ConfigurationError, Problem, at, did_you_mean


def test_a_problem_begins_with_its_place() -> None:
    assert str(at(from_file(Path("/f"), 3), "port", "is bad")) == "/f:3: is bad"
    assert str(at(from_file(Path("/f"), None), "", "is bad")) == "/f: is bad"
    assert str(at(from_environment("PORT"), "PORT", "is bad")) == "is bad"


def test_the_error_holds_all() -> None:
    error = ConfigurationError([Problem("a", "one"), Problem("b", "two")])
    assert isinstance(error, GatewayError)
    assert error.kind is Kind.NOT_CONFIGURED
    assert error.message == "cannot use the configuration: one; two"
    assert [problem.key for problem in error.problems] == ["a", "b"]


def test_did_you_mean() -> None:
    assert did_you_mean("prot", {"port", "host"}) == ", did you mean port?"
    assert did_you_mean("something", {"port", "host"}) == ""
