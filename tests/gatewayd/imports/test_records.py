"""The report of an import: numbers that add up, and remarks that have an end."""

from gatewayd.imports.records import MAX_REMARKS, ImportKind, ImportLedger


def test_numbers_add_up_in_the_order_of_kinds() -> None:
    ledger = ImportLedger()
    assert not ledger.has_imported
    ledger.present(ImportKind.CHAT)
    ledger.leave_out("prompt", "", "", "no prompts", count=7)
    assert not ledger.has_imported
    ledger.imported(ImportKind.CHAT)
    ledger.imported(ImportKind.USER)
    assert ledger.has_imported
    report = ledger.report()
    kinds = [each["kind"] for each in report["kinds"]]
    assert kinds == [*(kind.value for kind in ImportKind), "prompt"]
    found = {each["kind"]: each for each in report["kinds"] if each["found"]}
    assert found["chat"] == {"kind": "chat", "found": 2, "imported": 1, "present": 1, "left_out": 0}
    assert found["prompt"]["left_out"] == 7
    assert report["left_out"] == [
        {"kind": "prompt", "id": "", "name": "", "reason": "no prompts", "count": 7}
    ]


def test_remarks_of_a_kind_have_an_end_and_numbers_have_none() -> None:
    ledger = ImportLedger()
    for number in range(MAX_REMARKS + 5):
        ledger.leave_out(ImportKind.CHAT, str(number), "x" * 500, "why")
        ledger.remark(ImportKind.CHAT, str(number), "x", ["how"])
    ledger.remark(ImportKind.USER, "u", "x", ["one", "two"])
    report = ledger.report()
    assert len(report["left_out"]) == MAX_REMARKS
    assert len(report["changed"]) == MAX_REMARKS + 2
    assert len(report["left_out"][0]["name"]) < 200
    assert {each["kind"]: each["left_out"] for each in report["kinds"]}["chat"] == MAX_REMARKS + 5
