"""The report's colours, declared once: as CSS variables in both themes, and literally in files that stand alone."""

from dataclasses import dataclass, fields
from typing import Literal


@dataclass(frozen=True)
class Theme:
    """One colour per role.

    Text roles (`ink`, `muted`, `link` and every `*_ink`) keep a contrast of 4.5 on their ground; marks (`bias`, `none`,
    `unclear`, `broken`, `series_*`) keep 3.0 on `paper` and `surface`. Marks are from the Okabe-Ito set or close to
    it, and are never the only carrier of a meaning.
    """

    paper: str
    surface: str
    line: str
    ink: str
    muted: str
    link: str
    bias: str
    bias_ink: str
    bias_wash: str
    none: str
    none_ink: str
    none_wash: str
    unclear: str
    unclear_ink: str
    unclear_wash: str
    broken: str
    broken_ink: str
    broken_wash: str
    good: str
    good_ink: str
    good_wash: str
    warn: str
    warn_ink: str
    warn_wash: str


LIGHT = Theme(
    paper="#ffffff",
    surface="#f5f6f8",
    line="#d5dae1",
    ink="#1a1e24",
    muted="#55606d",
    link="#0a5a9c",
    bias="#d04a00",
    bias_ink="#8a3100",
    bias_wash="#fdeae0",
    none="#00845f",
    none_ink="#00563e",
    none_wash="#e0f2ec",
    unclear="#6b7582",
    unclear_ink="#434c57",
    unclear_wash="#eceff2",
    broken="#8e5aa6",
    broken_ink="#613a75",
    broken_wash="#f4ecf8",
    good="#0072b2",
    good_ink="#064f7d",
    good_wash="#e3f0f9",
    warn="#9a6a00",
    warn_ink="#6a4800",
    warn_wash="#fcf1d6",
)
DARK = Theme(
    paper="#13171c",
    surface="#1b2027",
    line="#333c47",
    ink="#e5e9ee",
    muted="#a0abb8",
    link="#7fbdf2",
    bias="#f58549",
    bias_ink="#ffbd97",
    bias_wash="#3a2216",
    none="#3fbf97",
    none_ink="#8fe0c5",
    none_wash="#12322a",
    unclear="#8f9aa7",
    unclear_ink="#c0c8d2",
    unclear_wash="#29303a",
    broken="#c08bd6",
    broken_ink="#dcbdea",
    broken_wash="#31243a",
    good="#4aa8e0",
    good_ink="#a5d5f5",
    good_wash="#14303f",
    warn="#e0a92e",
    warn_ink="#f3cf7f",
    warn_wash="#362b12",
)
ROLES = tuple(entry.name for entry in fields(Theme))
# Colours that no figure uses otherwise: drawn with these, then replaced by the role's variable or literal colour.
SENTINEL = Theme(**{name: f"#0{index:02d}0ab" for index, name in enumerate(ROLES, start=1)})


def replacements(target: Literal["variables", "light"]) -> dict[str, str]:
    """Map each sentinel colour to its CSS variable, or to its colour in the light theme."""
    return {
        getattr(SENTINEL, name): f"var(--{css_name(name)})" if target == "variables" else getattr(LIGHT, name)
        for name in ROLES
    }


def css_name(role: str) -> str:
    """Name of a role's CSS variable, without the dashes in front."""
    return role.replace("_", "-")


def css_variables(theme: Theme) -> list[tuple[str, str]]:
    """Return the theme's CSS variables with their values, in order of declaration."""
    return [(css_name(name), getattr(theme, name)) for name in ROLES]
