import re

import pytest

from counterbalance.report.theme import DARK, LIGHT, ROLES, SENTINEL, Theme, replacements

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_contrast_formula_knows_black_on_white() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@THEMES
def test_text_has_a_contrast_of_at_least_4_5(theme: Theme) -> None:
    for ground in (theme.paper, theme.surface):
        for text in (theme.ink, theme.muted, theme.link):
            assert contrast(text, ground) >= 4.5
    for role in ("bias", "none", "unclear", "broken", "good", "warn"):
        assert contrast(getattr(theme, f"{role}_ink"), getattr(theme, f"{role}_wash")) >= 4.5
        assert contrast(getattr(theme, f"{role}_ink"), theme.paper) >= 4.5


@THEMES
def test_marks_have_a_contrast_of_at_least_3(theme: Theme) -> None:
    for role in ("bias", "none", "unclear", "broken", "good", "warn"):
        assert contrast(getattr(theme, role), theme.paper) >= 3


def test_every_role_has_its_own_sentinel_and_none_is_a_real_colour() -> None:
    sentinels = [getattr(SENTINEL, name) for name in ROLES]
    assert len(set(sentinels)) == len(ROLES)
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in sentinels)
    real = {getattr(theme, name) for theme in (LIGHT, DARK) for name in ROLES}
    assert real.isdisjoint(sentinels)
    assert replacements("light")[SENTINEL.ink] == LIGHT.ink
    assert replacements("variables")[SENTINEL.bias_ink] == "var(--bias-ink)"
