"""The figures in the sentences of the manual pages are those of the code."""

import json
import re
from pathlib import Path

import pytest

from gatewayd import json_decoder
from gatewayd.accounts import attempts, devices, password_rules, passwords, sign_in, texts
from gatewayd.errors import GatewayError
from gatewayd.events import tickets
from gatewayd.extract.pool import PoolOptions
from gatewayd.http import scim_auth
from gatewayd.ingest import embedder, queue
from gatewayd.knowledge import fusion, retrieval
from gatewayd.pipeline import embeddings
from gatewayd.pipeline.responses import ids, reply_bodies
from gatewayd.plugins.builtin import redact
from gatewayd.settings import definitions
from gatewayd.storage import chat_sizes
from gatewayd.storage.search import pgvector
from gatewayd.text import MAX_STORED_DEPTH
from gatewayd.upstream.sources import model_list, provider_client
from gatewayd.upstream.streams import checks as streams_checks
from gatewayd.upstream.tools import openapi_tools
from tests import test_dialects_documented as dialects

MAN = Path(__file__).parents[1] / "man"
LIMITS = sign_in.SignInLimits()
MINUTES = sign_in.FAILURE_SECONDS // 60
HOUR = {3600: "an hour"}[sign_in.ACCOUNT_SECONDS]
IDS = reply_bodies._LIMITS
PAUSES = [queue.QueueOptions().pause * 4**place for place in range(queue.QueueOptions().attempts - 1)]
WORDS = {3: "three", 4: "four", 2: "two"}

SENTENCES = {
    "gatewayd.8": [
        f"local part of at most {texts.MAX_LOCAL_BYTES} bytes",
        f"at most {texts.MAX_LABEL_BYTES} bytes each, {texts.MAX_EMAIL} characters together",
        f"{password_rules.MIN_CHARACTERS} characters by default; 15 or more are recommended",
        f"The maximum is {password_rules.MAX_BYTES} bytes",
        f"the {len(password_rules.common_passwords()):,} most common ones of"
        f" {min(map(len, password_rules.common_passwords()))} and more characters",
        " , ".join(password_rules.PRODUCT_WORDS),
        f"{LIMITS.failures} from one address to one account in {MINUTES} minutes",
        f"{LIMITS.by_address} from one address to all accounts in {MINUTES} minutes",
        f"{WORDS[sign_in.WIDE_FACTOR]} times as many from one /{attempts.WIDE_PREFIX} of IPv6",
        f"{LIMITS.by_account} from all unknown addresses to one account in {HOUR}",
        f"the latest {attempts.MAX_TRACKED:,} counts",
        f"a limit of {LIMITS.failures} failures in {MINUTES} minutes for all sessions",
        f"{LIMITS.failures} of one device cookie in {MINUTES} minutes,"
        f" and {LIMITS.by_account} of all device cookies of one account in {HOUR}",
        f"{WORDS[passwords.MAX_THREADS]} at most and one at least",
        f"are at most {passwords.MAX_WAITING};",
        "argon2id with 19 MiB and two passes",
        f"good once, for {tickets.LIFE_SECONDS} seconds",
    ],
    "gatewayd-plugins.7": [
        f"one of over {openapi_tools.RESULT_LIMITS.containers} lists and objects or"
        f" {openapi_tools.RESULT_LIMITS.values} values",
        f"up to {redact.OWN_RULE_WINDOW_CHARACTERS} characters",
    ],
    "gatewayd-documents.7": [
        f"get vectors, {embedder.BATCH_SIZE} at a time",
        f"about {', '.join(map(str, PAUSES[:-1]))} and {PAUSES[-1]} seconds",
        f"longer than {PoolOptions(Path()).patience:g} times".replace("2 times", "twice"),
        f"for more than {PoolOptions(Path()).turn:g} seconds",
        f"up to {PoolOptions(Path()).spare} more processes",
        f"the best {retrieval.MIN_CANDIDATES} or four times",
        f"{fusion.RANK_CONSTANT + 1} / ({fusion.RANK_CONSTANT} + rank)",
        f"{WORDS[retrieval.RERANK_FACTOR]} times rag_top_k_reranker",
        f"at most {pgvector.MAX_GRAPH_DIMENSIONS} dimensions",
    ],
    "gatewayd-scim.7": [f"count them and name the first {WORDS[scim_auth.MAX_IDS_SHOWN]}"],
    "gatewayd-dialects.7": [
        *dialects.SENTENCES,
        "Integers have at most 64 bits",
        f"gets {embeddings.EmbeddingService.__init__.__kwdefaults__['batch']} at a time, and at most"
        f" {embeddings.EmbeddingService.__init__.__kwdefaults__['parallel']} such",
        f"in the last {ids.KEPT_SECONDS // 86_400} days; the last {ids.MAX_IDS_PER_USER} ids",
        f"over {provider_client.MAX_ANSWER_BYTES // 2**20} MiB,"
        f" or of more than {IDS.containers} lists and objects or {IDS.values} values",
        f"up to {model_list.MAX_ID_CHARACTERS} characters",
        f"less than {provider_client.MAX_REFUSAL_BYTES // 1024} KiB",
        f"{json_decoder.CHAT_LIMITS.depth} where it holds stored chats, {MAX_STORED_DEPTH} of them in",
        f"counted anew after every {chat_sizes.MEASURE_INTERVAL_BYTES} of them",
        f"takes no event for {chat_sizes.FULL_SECONDS:g} seconds",
        f"of one that is passed on unconverted {streams_checks.MAX_FRAME_BYTES // 2**20} MiB",
    ],
}
"""Beginnings and parts of sentences, as they stand in a page without its macros."""

WHOLE = [
    ("gatewayd-plugins.7", "LIMITS"),
    ("gatewayd-documents.7", "LIMITS"),
    ("gatewayd-dialects.7", "LIMITS"),
    ("gatewayd.8", "SECURITY CONSIDERATIONS"),
]
"""Sections all of whose figures have a sentence here, or a row of a table that another test compares."""

NO_LIMITS = (
    r"\b(?:200|400|401|403|404|409|413|415|429|500|502|503|504|529)\b|\d+\.\d+(?:\.\d+)?|\bV\d\b"
    r"|IPv6|SP 800-63B|/api/v1|gatewayd-?\w* \d\b|U\+FFFF|/64\b"
)
"""Statuses, versions and sections of standards, names."""


def plain(source: str) -> str:
    """Return a page as one line of text, without its tables and macros."""
    text = re.sub(r'(?ms)^\.\\" begin \w+\n.*?^\.\\" end \w+$', "", source)
    return dialects.plain(re.sub(r"(?m)^\.(?:El|Bl|Pp|It)\b.*$", "", text))


def page(name: str) -> str:
    return (MAN / name).read_text()


@pytest.mark.parametrize(
    ("name", "sentence"), [(name, each) for name in SENTENCES for each in SENTENCES[name]]
)
def test_a_sentence_has_the_figures_of_the_code(name: str, sentence: str) -> None:
    assert sentence.replace(" ,", ",") in dialects.plain(page(name))


@pytest.mark.parametrize(("name", "section"), WHOLE)
def test_every_figure_of_a_section_is_compared(name: str, section: str) -> None:
    text = plain(page(name).partition(f".Sh {section}\n")[2].partition("\n.Sh ")[0])
    for sentence in SENTENCES.get(name, ()):
        text = text.replace(sentence.replace(" ,", ","), "")
    assert re.findall(r".{0,40}\d.{0,20}", re.sub(NO_LIMITS, "", text)) == []


async def test_integers_of_a_body_have_64_bits() -> None:
    assert await json_decoder.decode(b"[%d]" % (2**64 - 1), json_decoder.SMALL_LIMITS) == [2**64 - 1]
    with pytest.raises(GatewayError):
        await json_decoder.decode(b"[%d]" % 2**64, json_decoder.SMALL_LIMITS)


def test_limits_of_sign_in_are_the_defaults_of_their_settings() -> None:
    found = definitions()
    for name, value in (
        ("password_min_length", password_rules.MIN_CHARACTERS),
        ("signin_failure_limit", LIMITS.failures),
        ("signin_address_failure_limit", LIMITS.by_address),
        ("signin_account_failure_limit", LIMITS.by_account),
    ):
        assert json.loads(found[name].default) == value
    assert devices.LIFE_SECONDS == 365 * 86_400
    assert "for a year." in dialects.plain(page("gatewayd.8"))
    assert attempts.network_of("2001:db8::1") == "2001:db8::/64"


def test_passwords_are_hashed_as_the_page_says() -> None:
    hasher = passwords.Passwords()._hasher
    assert (hasher.memory_cost, hasher.time_cost, hasher.type.name) == (19 * 1024, 2, "ID")
