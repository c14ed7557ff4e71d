import pytest

from gatewayd.settings.documents import render_sample, render_settings_list, update_manual

PAGE = """\
.Sh A
.\\" begin settings
what was here before
.\\" end settings
.Sh B
.\\" begin providers
.\\" end providers
.\\" begin provider_rules
.\\" end provider_rules
.\\" begin model_prices
.\\" end model_prices
.\\" begin oauth_providers
.\\" end oauth_providers
.Sh C
"""


def test_the_lists_of_the_page_are_replaced() -> None:
    page = update_manual(PAGE)
    assert "what was here before" not in page
    assert render_settings_list() in page
    assert page.startswith('.Sh A\n.\\" begin settings\n.Ss Server\n')
    assert page.endswith('.El\n.\\" end oauth_providers\n.Sh C\n')
    assert update_manual(page) == page


@pytest.mark.parametrize("page", ["", PAGE.replace("end settings", ""), PAGE + PAGE])
def test_a_page_without_its_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="do not occur exactly once"):
        update_manual(page)


def test_quotes_and_hyphens_survive_roff() -> None:
    text = render_settings_list()
    assert "Default: \\(dqx\\-api\\-key\\(dq." in text
    assert ".Ev ENABLE_API_KEYS ,\n.Ev ENABLE_API_KEY .\n" in text


def test_the_sample_says_what_a_setting_is_for_and_takes() -> None:
    comment = "# TCP port to listen on; 0 takes a free one. Takes a whole number, from 0 to 65535."
    assert f"\n{comment}\n#port = 8080\n" in render_sample()
    assert max(len(line) for line in render_sample().splitlines()) <= 110
