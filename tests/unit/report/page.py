"""A page as a browser would take it apart, far enough for the tests."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr", "rect", "path", "use"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    content: list["Element | str"] = field(default_factory=list)

    @property
    def children(self) -> list["Element"]:
        return [entry for entry in self.content if isinstance(entry, Element)]

    @property
    def text(self) -> str:
        return "".join(entry for entry in self.content if isinstance(entry, str))

    @property
    def words(self) -> str:
        """All text below, in order, one space between words."""
        parts = [entry if isinstance(entry, str) else entry.words for entry in self.content]
        return " ".join(" ".join(parts).replace("\u00a0", " ").split())

    @property
    def shape(self) -> object:
        """Tags and names of attributes, without any text."""
        return (self.tag, sorted(self.attributes), [child.shape for child in self.children])

    def find(self, *tags: str) -> list["Element"]:
        found = [self] if self.tag in tags else []
        return found + [entry for child in self.children for entry in child.find(*tags)]

    def all(self) -> list["Element"]:
        return [self, *(entry for child in self.children for entry in child.all())]


class Page(HTMLParser):
    """Parses strictly: an end tag that does not match its start, or one never closed, is an error."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#root", {})
        self._open = [self.root]
        self.feed(html)
        self.close()
        if len(self._open) != 1:
            raise AssertionError(f"never closed: {[entry.tag for entry in self._open[1:]]}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) != len(names):
            raise AssertionError(f"attribute twice in <{tag}>: {names}")
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].content.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if self._open[-1].tag != tag:
            raise AssertionError(f"</{tag}> closes <{self._open[-1].tag}> at line {self.getpos()[0]}")
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].content.append(data)
