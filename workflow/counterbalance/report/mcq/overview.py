"""All multiple-choice cells of a study on one screen: which show a bias, of what kind and size, and which could not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from counterbalance.config import Analysis
from counterbalance.report.live import LivePicture
from counterbalance.report.mcq.cells import CellView
from counterbalance.report.mcq.figures.goldilocks import HEIGHT, Point, draw_goldilocks, v_limit
from counterbalance.report.mcq.gallery import Figured
from counterbalance.report.mcq.kinds import kind_of
from counterbalance.report.mcq.notes import DETECTABLE, tests_of
from counterbalance.report.mcq.pooled import pooled, value_of, verdict_in_count
from counterbalance.report.mcq.section import Section
from counterbalance.report.numbers import CellNumbers, Number, Shown, show, show_p
from counterbalance.report.sources import Sources
from counterbalance.report.text import dollars, percent, plural, proportion
from counterbalance.scouting.outcome import CellDecision, read_decisions

_ORDER = ("bias", "no_bias_seen", "not_measurable", "degenerate", "mixed", "not_asked")
_WIDEST = 8
"""Columns of a grid, as far as it can be turned."""

_ROOMY = 12
"""So many cells are shown with interval and bars in the grid; more of them with less each."""


@dataclass(frozen=True)
class Reach:
    """Where V, its interval and the smallest detectable V lie on an axis, in per cent of its length."""

    v: float
    low: float | None
    high: float | None
    detectable: float | None
    words: str


@dataclass(frozen=True)
class Entry:
    """A cell in the list of all.

    Attributes
    ----------
    number
        Its place in the list, from 1.
    name
        Model and subset, and the experiment where there are several, on one line.
    kind
        The kind of bias, what the cell would have shown, or what its scout saw.
    tests
        What was tested, and its p-value after Holm.
    """

    number: int
    name: str
    cell: CellView
    experiment: str
    kind: str
    tests: Sequence[tuple[str, Shown]]
    reach: Reach | None


@dataclass(frozen=True)
class Grid:
    """An experiment's cells by model and subset; None where the experiment has no such cell."""

    experiment: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Entry | None]]]


@dataclass(frozen=True)
class Overview:
    """All cells of a study."""

    template: str
    statement: str
    further: Sequence[str]
    tally: Sequence[tuple[str, str, int]]
    """Verdict, its words, and how many cells have it."""
    grids: Sequence[Grid]
    roomy: bool
    entries: Sequence[Entry]
    several: bool
    """Whether the cells are of more than one experiment."""
    most_picks: int
    """Per cent of picks at the full height of the bars in the grid."""
    plot: LivePicture | None
    not_drawn: Sequence[Entry]
    aim: float
    """Place of the V that the plan wants to be able to see, in per cent of the axis in the list."""
    top: str
    """The V at the end of that axis."""
    saved: str
    """What leaving cells out after their scouts saved; empty where none was left out."""

    @property
    def pictures(self) -> list[LivePicture]:
        """All figures."""
        return [self.plot] if self.plot else []


def build_overview(sources: Sources, sections: Sequence[Section]) -> Overview:
    """Make the view of all cells, those with most bias first."""
    analysis = sources.study.config.analysis
    cells = sorted((cell for section in sections for cell in section.figured), key=_rank)
    several = len(sections) > 1
    points = {cell.cell.name: point for n, cell in enumerate(cells, 1) if (point := _point(n, cell, several))}
    top = v_limit(list(points.values()))
    scouted = read_decisions(sources.study)
    entries = [
        _entry(n, cell, _kind(cell, analysis, scouted.get(cell.cell.name)), several=several, top=top)
        for n, cell in enumerate(cells, 1)
    ]
    by_name = {cell.cell.name: entry for cell, entry in zip(cells, entries, strict=True)}
    statement, further = pooled(cells, analysis)
    tally = _tally(cells)
    return Overview(
        template="mcq.html.j2",
        statement=statement,
        further=further,
        tally=tally,
        grids=[_grid(section, by_name) for section in sections],
        roomy=len(cells) <= _ROOMY,
        entries=entries,
        several=several,
        most_picks=_most_picks(cells),
        plot=_plot(list(points.values()), analysis) if points else None,
        not_drawn=[entry for name, entry in by_name.items() if name not in points],
        aim=round(100 * min(1.0, analysis.measurable_v / top), 2),
        top=proportion(top, 1),
        saved=_saved([entry for entry in scouted.values() if entry.skipped]),
    )


def _saved(skipped: Sequence[CellDecision]) -> str:
    if not skipped:
        return ""
    prices = [entry.nano_usd for entry in skipped if entry.nano_usd is not None]
    cost = f", about {dollars(sum(prices))} not spent" if prices else ""
    scouts = sum(entry.calls for entry in skipped)
    calls = plural(sum(entry.left for entry in skipped), "call")
    return f"{plural(len(skipped), 'cell')} left out: {calls} not made{cost}, for {plural(scouts, 'call')} of scouts."


def _rank(entry: Figured) -> tuple[int, float]:
    verdict = verdict_in_count(entry)
    place = _ORDER.index(verdict) if verdict in _ORDER else len(_ORDER)
    v = value_of(entry, "V.corrected")
    return place, -1.0 if v is None else -v


def _most_picks(cells: Sequence[Figured]) -> int:
    shares = (slot.picks.estimate for cell in cells for slot in cell.view.slots if slot.picks is not None)
    largest = max((share for share in shares if share is not None), default=1.0)
    return next(limit for limit in (40, 60, 80, 100) if 100 * largest <= limit or limit == 100)


def _tally(cells: Sequence[Figured]) -> list[tuple[str, str, int]]:
    words = {verdict_in_count(entry): entry.view.words for entry in cells if not entry.view.mixture}
    verdicts = [verdict_in_count(entry) for entry in cells]
    return [(verdict, words.get(verdict, "Mixed"), verdicts.count(verdict)) for verdict in dict.fromkeys(verdicts)]


def _entry(number: int, entry: Figured, kind: str, *, several: bool, top: float) -> Entry:
    return Entry(
        number=number,
        name=_name(entry, several),
        cell=entry.view,
        experiment=entry.cell.experiment.id,
        kind=kind,
        tests=[(word, show_p(_clearest(entry.numbers, word), adjusted=True)) for word in ("accuracy", "picks")],
        reach=_reach(entry, top),
    )


def _clearest(numbers: CellNumbers, word: str) -> Number | None:
    """Return the test with the smallest corrected p over all numbers of options."""
    found = [number for name, _, number in tests_of(numbers) if name == word]
    return min(found, key=lambda number: 2.0 if number.p_adjusted is None else number.p_adjusted, default=None)


def _name(entry: Figured, several: bool) -> str:
    cell = entry.cell
    return " · ".join([cell.model.id, cell.dataset.id, *([cell.experiment.id] if several else [])])


def _kind(entry: Figured, analysis: Analysis, scouted: CellDecision | None) -> str:
    verdict = verdict_in_count(entry)
    if verdict == "not_asked":
        seen = scouted.accuracy if scouted else None
        return "left out after its scout" if seen is None else f"scout’s accuracy {percent(seen)}"
    if verdict == "mixed":
        return "more than one model answered"
    if verdict == "bias":
        return kind_of(entry.numbers, analysis)
    detectable = value_of(entry, DETECTABLE)
    if detectable is None or verdict not in ("no_bias_seen", "not_measurable"):
        return ""
    return f"{'sees only' if verdict == 'not_measurable' else 'sees'} V ≥ {proportion(detectable)}"


def _place(entry: Figured) -> tuple[float, float] | None:
    accuracy, v = value_of(entry, "accuracy"), value_of(entry, "V.corrected")
    return None if accuracy is None or v is None or entry.view.mixture else (accuracy, v)


def _point(number: int, entry: Figured, several: bool) -> Point | None:
    place = _place(entry)
    if place is None:
        return None
    v = entry.numbers["V.corrected"]
    return Point(
        number=number,
        href=f"#{entry.view.anchor}",
        words=f"{number}. {_name(entry, several)}: {_in_words(entry)}",
        verdict=entry.view.verdict,
        accuracy=place[0],
        v=place[1],
        low=v.low,
        high=v.high,
        detectable=value_of(entry, DETECTABLE),
    )


def _in_words(entry: Figured) -> str:
    v, detectable = entry.view.v, show(entry.numbers.get(DETECTABLE))
    accuracy = value_of(entry, "accuracy")
    parts = [
        entry.view.words,
        f"accuracy {percent(accuracy)}" if accuracy is not None else "",
        f"V {v.text} {v.interval}".strip(),
        f"would show V ≥ {detectable.text}",
    ]
    return ", ".join(part for part in parts if part)


def _reach(entry: Figured, top: float) -> Reach | None:
    v = entry.numbers.get("V.corrected")
    if v is None or v.estimate is None or entry.view.mixture:
        return None

    def place(value: float) -> float:
        return round(100 * min(1.0, max(0.0, value / top)), 2)

    low, high, detectable = (
        None if value is None else place(value) for value in (v.low, v.high, value_of(entry, DETECTABLE))
    )
    return Reach(place(v.estimate), low, high, detectable, _in_words(entry))


def _plot(points: Sequence[Point], analysis: Analysis) -> LivePicture:
    return LivePicture(
        name="goldilocks",
        title=f"V against accuracy in {plural(len(points), 'cell')}",
        description="; ".join(point.words for point in points),
        drawn=draw_goldilocks(points, analysis.capability_band, analysis.measurable_v),
        height=HEIGHT,
    )


def _grid(section: Section, by_name: Mapping[str, Entry]) -> Grid:
    """Lay out an experiment with models as rows, or turned where that fits better; most bias comes first."""
    entries = {(cell.cell.model.id, cell.cell.dataset.id): by_name[cell.cell.name] for cell in section.figured}
    models = _sorted({model: [e for (m, _), e in entries.items() if m == model] for model, _ in entries})
    subsets = _sorted({subset: [e for (_, s), e in entries.items() if s == subset] for _, subset in entries})
    if len(subsets) > _WIDEST and len(models) < len(subsets):
        rows = [(subset, [entries.get((model, subset)) for model in models]) for subset in subsets]
        return Grid(section.id, models, rows)
    return Grid(section.id, subsets, [(model, [entries.get((model, s)) for s in subsets]) for model in models])


def _sorted(groups: Mapping[str, Sequence[Entry]]) -> list[str]:
    """Order models or subsets by how many of their cells have a bias, then by where those stand in the list."""

    def rank(name: str) -> tuple[int, float]:
        found = groups[name]
        return -sum(e.cell.verdict == "bias" for e in found), sum(e.number for e in found) / len(found)

    return sorted(groups, key=rank)
