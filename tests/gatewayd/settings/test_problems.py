from pathlib import Path

from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.settings.origins import from_environment, from_file
from gatewayd.settings.problems import ConfigurationError, ConfigurationProblem, did_you_mean, problem_at


def test_a_problem_begins_with_its_place() -> None:
    assert str(problem_at(from_file(Path("/f"), 3), "port", "is bad")) == "/f:3: is bad"
    assert str(problem_at(from_file(Path("/f"), None), "", "is bad")) == "/f: is bad"
    assert str(problem_at(from_environment("PORT"), "PORT", "is bad")) == "is bad"


def test_the_error_holds_all() -> None:
    error = ConfigurationError([ConfigurationProblem("a", "one"), ConfigurationProblem("b", "two")])
    assert isinstance(error, GatewayError)
    assert error.kind is ErrorKind.NOT_CONFIGURED
    assert error.message == "cannot use the configuration: one; two"
    assert [problem.key for problem in error.problems] == ["a", "b"]


def test_did_you_mean() -> None:
    assert did_you_mean("prot", {"port", "host"}) == ", did you mean port?"
    assert did_you_mean("something", {"port", "host"}) == ""
