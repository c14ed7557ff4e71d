"""Tests for gatewayd.completions.refusal_reasons: the error bodies of the makers and of local engines."""

from typing import Any

import pytest

from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.refusal_reasons import (
    CODES,
    RefusalReason,
    classify,
    names_key,
    reason_of,
    retry_delay_in,
    told_code,
)

FILTERED = RefusalReason.FILTERED
KEY = RefusalReason.KEY
NO_CREDIT = RefusalReason.NO_CREDIT
OVERLOADED = RefusalReason.OVERLOADED
RATE_LIMITED = RefusalReason.RATE_LIMITED
TOO_LONG = RefusalReason.TOO_LONG
UNKNOWN_MODEL = RefusalReason.UNKNOWN_MODEL


def error(message: str = "", **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


QUOTA_DETAILS = [{"violations": [{"quotaId": "PerDay"}]}]
DELAY_DETAILS = [{"violations": [{"quotaId": "PerMinute"}]}, {"retryDelay": "12s"}]
SPENT_TEAM = "has either used all available credits or reached its monthly spending limit."
PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
"""What the free plan of Gemini says: its metric is the same for both windows."""


def quota(*ids: str, **fields: str) -> list[dict[str, Any]]:
    violations = [{"quotaMetric": METRIC, "quotaId": each, **fields} for each in ids]
    help_ = {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "quotas"}]}
    return [help_, {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}]


RETRY = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "59s"}]
BILLING = "You exceeded your current quota, please check your plan and billing details."


def exhausted(details: list[dict[str, Any]], message: str = BILLING) -> dict[str, Any]:
    return error(message, code=429, status="RESOURCE_EXHAUSTED", details=details)


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        # OpenAI.
        (429, error(type="insufficient_quota", code="credit_balance_exhausted"), NO_CREDIT),
        (429, error(type="tokens", code="rate_limit_exceeded"), RATE_LIMITED),
        (503, error(type="service_unavailable_error", code="server_is_overloaded"), OVERLOADED),
        (503, error("try again"), None),
        (404, error(code="model_not_found"), UNKNOWN_MODEL),
        (403, error("Project has no access to model gpt", code="model_not_found"), UNKNOWN_MODEL),
        (401, error(code="invalid_api_key"), KEY),
        (400, error(code="content_policy_violation"), FILTERED),
        (400, error(code="unsupported_value", type="invalid_request_error"), None),
        # Azure.
        (400, error(code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}), FILTERED),
        (400, error(innererror={"code": "ResponsibleAIPolicyViolation"}), FILTERED),
        (404, error(code="DeploymentNotFound"), UNKNOWN_MODEL),
        # Anthropic.
        (402, error(type="billing_error"), NO_CREDIT),
        (400, error("Your credit balance is too low", type="invalid_request_error"), NO_CREDIT),
        (
            429,
            error(type="rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            NO_CREDIT,
        ),
        (429, error(type="rate_limit_error"), RATE_LIMITED),
        (529, error(type="overloaded_error"), OVERLOADED),
        (500, error(type="overloaded_error"), OVERLOADED),
        (404, error("model: claude-none", type="not_found_error"), UNKNOWN_MODEL),
        (403, error(type="permission_error"), KEY),
        # Gemini.
        (400, [error(status="INVALID_ARGUMENT", details=[{"reason": "API_KEY_INVALID"}])], KEY),
        (429, error(BILLING, code=429, status="RESOURCE_EXHAUSTED", details=DELAY_DETAILS), RATE_LIMITED),
        (429, error(BILLING, code=429, status="RESOURCE_EXHAUSTED", details=QUOTA_DETAILS), NO_CREDIT),
        (429, [exhausted(quota(PER_DAY, quotaValue="20") + RETRY)], NO_CREDIT),
        (429, exhausted(quota(PER_MINUTE, quotaValue="2") + RETRY), RATE_LIMITED),
        (429, [exhausted(quota(PER_MINUTE))], RATE_LIMITED),
        (429, exhausted(quota(PER_MINUTE, PER_DAY) + RETRY), NO_CREDIT),
        (429, exhausted(quota(PER_MINUTE, quotaValue="0") + RETRY), NO_CREDIT),
        (429, exhausted([{"violations": [{"quotaMetric": "x/requests_per_model_per_day"}]}]), NO_CREDIT),
        (429, exhausted([], f"{BILLING}\n* Quota exceeded for metric: {PER_DAY}"), NO_CREDIT),
        (429, exhausted([], f"* Quota exceeded for metric: {METRIC}, limit: 0, model: g\nmore"), NO_CREDIT),
        (429, exhausted([], f"* Quota exceeded for metric: {METRIC}, limit: 05, model: g"), RATE_LIMITED),
        (429, exhausted([], "Resource has been exhausted (e.g. check quota)."), RATE_LIMITED),
        (0, {"error": exhausted(quota(PER_DAY) + RETRY)["error"]}, NO_CREDIT),
        (400, error("wait", code=429), RATE_LIMITED),
        (500, error("wait", status="RESOURCE_EXHAUSTED"), RATE_LIMITED),
        (503, error(status="UNAVAILABLE"), OVERLOADED),
        (404, error("models/g is not found for API version v1", status="NOT_FOUND"), UNKNOWN_MODEL),
        # Others.
        (429, error("insufficient balance", type="exceeded_current_quota_error"), NO_CREDIT),
        (429, error("engine busy", type="engine_overloaded_error"), OVERLOADED),
        (403, error("Insufficient credits"), NO_CREDIT),
        # xAI has a rate limit's status and word, or that of a wrong key.
        (429, {"code": "Some resource has been exhausted", "error": f"Your team {SPENT_TEAM}"}, NO_CREDIT),
        (403, {"code": "permission_denied", "error": f"Your team {SPENT_TEAM}"}, NO_CREDIT),
        (403, {"code": "permission_denied", "error": "Your team doesn't have any credits yet"}, NO_CREDIT),
        (403, {"code": "permission_denied", "error": "Your team is blocked"}, KEY),
        (403, {"code": "no permission", "error": "Content violates usage guidelines."}, FILTERED),
        (400, {"code": "Arrearage", "message": "in arrears"}, NO_CREDIT),
        (400, error(code="data_inspection_failed"), FILTERED),
        (400, {"__type": "ThrottlingException", "message": "slow"}, RATE_LIMITED),
        (404, {"error": "model 'x' not found, try pulling it first"}, UNKNOWN_MODEL),
        (404, {"error": "404 page not found"}, None),
        (400, error(type="exceed_context_size_error"), TOO_LONG),
        (400, {"detail": [{"loc": ["body", "seed"], "type": "extra_forbidden"}]}, None),
        # In a stream.
        (0, error(type="authentication_error"), KEY),
        (0, error("violates our content policy"), FILTERED),
        (0, {"error": {"code": True}}, None),
        (500, None, None),
        (429, None, RATE_LIMITED),
        (403, b"", KEY),
    ],
)  # fmt: skip
def test_what_makers_say(status: int, answer: Any, reason: RefusalReason | None) -> None:
    assert classify(answer, error_message_in(answer) or "", status) is reason


def test_every_code_has_one_reason() -> None:
    assert sum(map(len, CODES.values())) == len(frozenset().union(*CODES.values()))
    for reason, codes in CODES.items():
        assert {reason_of(code.upper()) for code in codes} == {reason}
    assert reason_of(None) is reason_of("unsupported_value") is None


@pytest.mark.parametrize(
    ("reason", "given", "told"),
    [
        (NO_CREDIT, "credit_balance_exhausted", "credit_balance_exhausted"),
        (NO_CREDIT, "Arrearage", "insufficient_quota"),
        (NO_CREDIT, "slow_down", "insufficient_quota"),
        (FILTERED, "content_filter", "content_filter"),
        (FILTERED, None, "content_policy_violation"),
        (KEY, "invalid_api_key", "provider_auth"),
        (UNKNOWN_MODEL, "DeploymentNotFound", "model_not_found"),
    ],
)
def test_codes_that_clients_know_are_kept(reason: RefusalReason, given: str | None, told: str) -> None:
    assert told_code(reason, given) == told


def test_large_answers_are_not_searched_whole() -> None:
    details = [{"reason": "x"}] * 100_000 + [{"retryDelay": "1s", "reason": "API_KEY_INVALID"}]
    answer = error("model " * 100_000 + "not found", details=details)
    assert classify(answer, answer["error"]["message"], 404) is None
    assert retry_delay_in(answer) is None


@pytest.mark.parametrize(
    ("answer", "sentence", "is_named"),
    [
        ({"error": {"type": "permission_error"}}, "Your API key does not have permission to use it", True),
        ({"error": {"status": "PERMISSION_DENIED"}}, "Method doesn't allow unregistered callers", True),
        ({}, "Key is disabled", True),
        ({}, "The team is suspended", True),
        ({}, "Insufficient credits", True),
        ({"error": {"code": "forbidden"}}, "Forbidden", False),
        ({"error": {"code": "permission_denied"}}, "Content violates usage guidelines", False),
        ({"error": {"code": "content_filter", "type": "permission_error"}}, "no", False),
        ({}, "monkeys have no place here", False),
        (None, "", False),
        ({}, "key " * 100_000, False),
    ],
)
def test_a_403_is_about_the_key_only_if_it_says_so(answer: Any, sentence: str, is_named: bool) -> None:
    assert names_key(answer, sentence) is is_named
