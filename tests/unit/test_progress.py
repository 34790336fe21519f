import io
import threading

import pytest

from counterbalance.progress import BarProgress, LineProgress, Meter, SilentProgress, duration, make_progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_says_count_rate_and_time_left() -> None:
    clock = Clock()
    meter = Meter("letters/smollm2/copying", total=600, done=0, clock=clock)
    assert meter.line() == "letters/smollm2/copying  0/600 calls"
    clock.now += 10
    meter.advance(300)
    assert meter.line() == "letters/smollm2/copying  300/600 calls  30.0/s  10 s left"
    clock.now += 10
    meter.advance(300)
    assert meter.line() == "letters/smollm2/copying  600/600 calls  30.0/s"


def test_calls_of_earlier_sessions_are_counted_but_not_in_the_rate() -> None:
    clock = Clock()
    meter = Meter("letters/m/s", total=600, done=400, clock=clock)
    clock.now += 5
    meter.advance(10)
    assert meter.line() == "letters/m/s  410/600 calls  2.0/s  1 min 35 s left  (400 from before)"


def test_money_is_said_where_it_is_known() -> None:
    meter = Meter("letters/m/s", total=600, done=0, clock=Clock())
    meter.spend(1_250_000_000)
    assert meter.line() == "letters/m/s  0/600 calls  $1.25 spent"
    capped = Meter("letters/m/s", total=600, done=0, most_nano_usd=5_000_000_000, clock=Clock())
    assert "spent" not in capped.line()
    capped.spend(1_250_000_000)
    assert capped.line() == "letters/m/s  0/600 calls  $1.25 spent, at most $3.75 left"
    stream = io.StringIO()
    for progress in (LineProgress(stream), BarProgress(stream), SilentProgress()):
        progress.start("a/b/c", total=10, done=0, most_nano_usd=20_000_000)
        progress.spend(10_000_000)
        progress.advance(10)
        progress.finish()
    assert stream.getvalue().count("10/10 calls") >= 2
    assert "$0.01 spent, at most $0.01 left" in stream.getvalue()


def test_lines_come_now_and_then_and_at_both_ends() -> None:
    clock, stream = Clock(), io.StringIO()
    progress = LineProgress(stream, clock=clock)
    progress.start("a/b/c", total=100, done=0)
    for _ in range(50):
        clock.now += 0.2
        progress.advance(2)
    progress.finish()
    counts = [line.split("  ")[1] for line in stream.getvalue().splitlines()]
    assert counts == ["0/100 calls", "50/100 calls", "100/100 calls", "100/100 calls"]
    progress.advance(1)
    progress.finish()
    assert len(stream.getvalue().splitlines()) == 4


def test_it_may_be_told_from_several_threads() -> None:
    stream = io.StringIO()
    progress = LineProgress(stream, interval_s=1000)
    progress.start("a/b/c", total=4000, done=0)
    threads = [threading.Thread(target=lambda: [progress.advance(1) for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    progress.finish()
    assert "4000/4000 calls" in stream.getvalue().splitlines()[-1]


def test_a_terminal_gets_a_bar_and_anything_else_lines() -> None:
    terminal = Terminal()
    bar = make_progress("auto", terminal)
    assert isinstance(bar, BarProgress)
    bar.start("a/b/c", total=10, done=4)
    bar.advance(6)
    bar.finish()
    assert "10/10 calls" in terminal.getvalue()
    assert isinstance(make_progress("auto", io.StringIO()), LineProgress)
    assert isinstance(make_progress("plain", terminal), LineProgress)
    silent = make_progress("none", terminal)
    assert isinstance(silent, SilentProgress)


def test_by_default_it_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    progress = make_progress("plain")
    progress.start("a/b/c", total=1, done=0)
    progress.finish()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("a/b/c  0/1 calls\n")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (7.2, "7 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
