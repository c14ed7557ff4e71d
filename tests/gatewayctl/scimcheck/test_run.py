"""A whole check."""

from collections.abc import Sequence

import pytest

from gatewayctl.scimcheck.address import read_base
from gatewayctl.scimcheck.common import fingerprint
from gatewayctl.scimcheck.records import Ask, Fault, Memory, ScimAnswer, Unanswered
from gatewayctl.scimcheck.run import LACKS, run, start, steps
from gatewayctl.wire.scim import ScimCheck
from gatewayd.scim.tokens.rotation import fingerprint as fingerprint_of_the_daemon
from tests.fakes.accounts.scim_service import Service, failed


def results(rows: Sequence[ScimCheck]) -> dict[str, str]:
    return {row.step: row.result for row in rows}


def test_a_good_service_passes_every_step(service: Service, memory: Memory) -> None:
    rows = list(run(service, memory, steps(is_writing=True)))
    assert set(results(rows).values()) == {"ok"}, rows
    assert all(row.detail and not row.advice for row in rows)
    assert service.name == ""


def test_reading_changes_nothing(service: Service, memory: Memory) -> None:
    rows = list(run(service, memory, steps(is_writing=False)))
    assert set(results(rows).values()) == {"ok"}
    assert {ask.method for ask in service.asked} == {"GET"}


def test_a_refused_token_skips_what_needs_it(service: Service, memory: Memory) -> None:
    service.replies["GET", "/Users"] = lambda ask: failed(401, www_authenticate="Bearer")
    rows = list(run(service, memory, steps(is_writing=True)))
    assert results(rows)["token"] == "failed"
    rest = [row for row in rows if row.step not in {"reach", "wrong token", "token"}]
    assert {row.result for row in rest} == {"skipped"}
    assert {row.detail for row in rest if row.step != "add member"} <= set(LACKS.values())


def test_without_an_answer_nothing_else_is_tried(memory: Memory) -> None:
    class Silent:
        asked = 0

        def send(self, ask: Ask) -> ScimAnswer:
            self.asked += 1
            raise Unanswered(Fault("nobody listens", "start it"))

    probe = Silent()
    first, *rest = run(probe, memory, steps(is_writing=True))
    assert (first.result, first.detail, first.advice) == ("failed", "nobody listens", "start it")
    assert {(row.result, row.detail) for row in rest} == {("skipped", "there was no answer before")}
    assert probe.asked == 1


@pytest.mark.parametrize("broken", ["Add", "Remove", "replace"])
def test_a_group_that_was_made_is_deleted_whatever_else_failed(
    service: Service, memory: Memory, broken: str
) -> None:
    def patch(ask: Ask) -> ScimAnswer:
        if ask.body and ask.body["Operations"][0]["op"] == broken:
            return failed(400, scim_type="invalidPath")
        return service._write(ask)

    service.replies["PATCH", "/Groups/g1"] = patch
    rows = list(run(service, memory, steps(is_writing=True)))
    assert "failed" in results(rows).values()
    assert (results(rows)["delete group"], results(rows)["group deleted"]) == ("ok", "ok")
    assert service.name == ""


def test_the_start_knows_the_token_by_its_fingerprint_only() -> None:
    memory = start(read_base("http://h"), "secret-token")
    assert memory["fingerprint"] == fingerprint("secret-token") == fingerprint_of_the_daemon("secret-token")
    assert "secret-token" not in str(memory)
    assert memory["is_open"] == "yes"
    assert memory["random"] in memory["name"]
