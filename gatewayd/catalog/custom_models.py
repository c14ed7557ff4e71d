"""Custom models: administrators' records with a base model, added to the lists of the sources."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from gatewayd.catalog.failover import Candidate
from gatewayd.catalog.interfaces import ModelSource
from gatewayd.catalog.model_names import LATEST_TAG, find_listed_name
from gatewayd.catalog.records import FAMILY, Model, ModelRecord
from gatewayd.errors import GatewayError, invalid, shorten
from gatewayd.pictures.addresses import is_picture

MAX_FAMILY_CHARACTERS: Final = 256
"""Maximum length of the canonical id of a model."""

PICTURE: Final = "profile_image_url"
"""Member of a record's `meta` with the address of the picture of the model."""

Candidates = tuple[Candidate[ModelSource], ...]


def add_custom_models(
    listed: Mapping[str, Candidates], records: Collection[ModelRecord]
) -> dict[str, Candidates]:
    """Return the listed models and the custom models whose base is listed.

    A custom model uses the sources and upstream ids of its base; its listing has `preset` set.
    """
    merged = dict(listed)
    # A custom model has the family of its base, so that the records of listed models come first.
    own = [record for record in records if record.base_model_id is None]
    for record in own:
        listed_id = find_listed_name(record.id, listed)
        if listed_id in listed and (record.family or record.rules):
            merged[listed_id] = tuple(
                Candidate(with_record(found.model, record), found.source) for found in listed[listed_id]
            )
    bases = dict(merged)
    for record in records:
        base_id = None if record.base_model_id is None else find_listed_name(record.base_model_id, listed)
        if base_id is not None and base_id in listed:
            merged[record.id] = tuple(_custom_candidate(record, found) for found in bases[base_id])
    return merged


def check_base(record: ModelRecord, known: Mapping[str, ModelRecord]) -> None:
    """Raise invalid_request if a record's base is the model itself or another custom model."""
    base_id = record.base_model_id
    if base_id is None:
        return
    base = known.get(base_id)
    if not base_id:
        raise _refused("it is empty")
    if record.id in (base_id, base_id + LATEST_TAG):
        raise _refused("a model cannot be its own base")
    if base is not None and base.base_model_id is not None:
        raise _refused(f"{shorten(base_id)!r} itself is based on {shorten(base.base_model_id)!r}")
    above = next((other for other in known.values() if other.base_model_id == record.id), None)
    if above is not None:
        raise _refused(f"{shorten(above.id)!r} is based on this model")


def check_picture(record: ModelRecord) -> None:
    """Raise invalid_request if the picture of a record is no address that `is_picture` accepts."""
    picture = record.meta.get(PICTURE) if record.meta else None
    if picture is not None and not (isinstance(picture, str) and is_picture(picture)):
        raise invalid(
            f"cannot accept meta.{PICTURE}: expected a path, an http(s) address or a data address "
            "of a PNG, JPEG, GIF or WebP picture in Base64",
            param=f"meta.{PICTURE}",
        )


def check_family(record: ModelRecord) -> None:
    """Raise invalid_request if the family of a record is no printable text of MAX_FAMILY_CHARACTERS."""
    family = record.meta.get(FAMILY) if record.meta else None
    if family is None:
        return
    if not isinstance(family, str) or not family.isprintable() or len(family) > MAX_FAMILY_CHARACTERS:
        raise invalid(
            f"cannot accept meta.{FAMILY}: expected a printable text of at most"
            f" {MAX_FAMILY_CHARACTERS} characters",
            param=f"meta.{FAMILY}",
        )


def _refused(reason: str) -> GatewayError:
    return invalid(f"cannot accept base_model_id: {reason}", param="base_model_id")


def _custom_candidate(record: ModelRecord, found: Candidate[ModelSource]) -> Candidate[ModelSource]:
    base = found.model
    model = replace(
        base,
        id=record.id,
        name=record.name or record.id,
        created=record.created_at,
        detail={**base.detail, "preset": True},
    )
    return Candidate(with_record(model, record), found.source)


def with_record(model: Model, record: ModelRecord) -> Model:
    """Return a model with the family and the rules that its record gives."""
    family, rules = record.family, record.rules
    if not family and not rules:
        return model
    return replace(model, family=family or model.family, rules={**model.rules, **rules})
