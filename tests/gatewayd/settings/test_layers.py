from pathlib import Path

from gatewayd.settings.layers import LayerSource, SettingEntry, SettingLayer
from gatewayd.settings.model import Settings
from gatewayd.settings.origins import BUILT_IN, FROM_COMMAND_LINE, from_file

PORT = SettingEntry(1, "port", BUILT_IN)
HOST = SettingEntry("h", "host", FROM_COMMAND_LINE)


def test_without_leaves_the_rest() -> None:
    assert SettingLayer({"port": PORT, "host": HOST}).without({"port", "env"}) == SettingLayer({"host": HOST})


def test_a_source_gives_the_values() -> None:
    source = LayerSource(Settings, SettingLayer({"port": PORT}))
    fields = Settings.model_fields
    assert source() == {"port": 1}
    assert source.get_field_value(fields["port"], "port") == (1, "port", False)
    assert source.get_field_value(fields["host"], "host") == (None, "host", False)


def test_the_origin_within_a_value_is_asked_of_its_document() -> None:
    assert HOST.origin_of(("host", 0)) is FROM_COMMAND_LINE
    entry = SettingEntry([], "x", BUILT_IN, lambda place: from_file(Path("/f"), len(place)))
    assert entry.origin_of(("x", 0, "y")).line == 3
