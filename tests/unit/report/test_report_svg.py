import re
import xml.etree.ElementTree as ET

from counterbalance.report.canvas import drawing, new_figure, png_bytes, svg_bytes
from counterbalance.report.pictures import Picture
from counterbalance.report.svg import finish
from counterbalance.report.theme import LIGHT, SENTINEL

HOSTILE = '</title><script>alert(1)</script> "onload=" \u202e'


def draw(text: str = "label") -> bytes:
    with drawing():
        figure = new_figure(2, 1, SENTINEL)
        axes = figure.add_axes((0.1, 0.1, 0.8, 0.8))
        axes.plot([0, 1], [0, 1], color=SENTINEL.bias, marker="o")
        axes.set_title(text, color=SENTINEL.ink)
        return svg_bytes(figure)


def inline(text: str = "label", prefix: str = "one") -> str:
    return finish(draw(text), prefix=prefix, title=HOSTILE, description="d", target="variables")


def test_colours_follow_the_page_and_are_literal_in_a_file() -> None:
    page = inline()
    file = finish(draw(), prefix="x", title="t", description="d", target="light")
    assert "var(--bias)" in page
    assert "var(--ink)" in page
    assert LIGHT.bias in file
    assert "var(" not in file
    assert not re.search("#0[0-9a-f]{2}0ab", page + file)


def test_two_figures_share_no_id() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', inline(prefix=prefix))) for prefix in ("one", "two")]
    assert ids[0]
    assert ids[0].isdisjoint(ids[1])


def test_every_reference_has_its_target() -> None:
    page = inline()
    ids = set(re.findall(r'\bid="([^"]+)"', page))
    references = set(re.findall(r'href="#([^"]+)"', page)) | set(re.findall(r"url\(#([^)]+)\)", page))
    assert references
    assert references <= ids


def test_nothing_of_the_drawing_leaks_into_the_page() -> None:
    page = inline()
    assert "<style" not in page
    assert "http" not in page
    assert "font-family" not in page
    assert "width=" not in page.split(">")[0]


def test_text_alternatives_are_there_and_escaped() -> None:
    root = ET.fromstring(inline())
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "one-title one-desc"
    title = root[0]
    assert title.tag == "title"
    assert title.text == '</title><script>alert(1)</script> "onload=" ⟨U+202E⟩'


def test_labels_are_text_and_never_mathematics() -> None:
    root = ET.fromstring(inline("$\\frac{1}$ <b>&"))
    assert "$\\frac{1}$ <b>&" in [element.text for element in root.iter("text")]


def test_a_file_is_a_document_with_a_size() -> None:
    root = ET.fromstring(Picture("n", "t", "d", draw()).file)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width") == "144pt"


def test_the_same_drawing_gives_the_same_bytes_whatever_the_settings() -> None:
    import matplotlib

    first = draw()
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": True}):
        assert draw() == first
        assert matplotlib.rcParams["font.size"] == 30


def test_a_png_names_no_software() -> None:
    with drawing():
        data = png_bytes(new_figure(1, 1, LIGHT), dpi=50)
    assert data.startswith(b"\x89PNG")
    assert b"atplotlib" not in data
