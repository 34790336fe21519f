"""What a verification found, line by line."""

from dataclasses import dataclass, field

from counterbalance.errors import VerificationError

_MOST = 20


@dataclass
class Findings:
    """Lines in the order found: what holds, what could not be checked and why, what does not hold."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def ok(self, text: str) -> None:
        """Note something that was checked and holds."""
        self.lines.append(("ok", text))

    def note(self, text: str) -> None:
        """Note something that a reader must know and that is no failure."""
        self.lines.append(("note", text))

    def fail(self, text: str) -> None:
        """Note something that does not hold."""
        self.lines.append(("FAIL", text))

    def check(self, problems: list[str], holds: str) -> bool:
        """Note the problems (the first of them, if they are very many), or that there are none."""
        for text in problems[:_MOST]:
            self.fail(text)
        if len(problems) > _MOST:
            self.fail(f"and {len(problems) - _MOST} more of the same kind")
        if not problems:
            self.ok(holds)
        return not problems

    @property
    def failures(self) -> int:
        return sum(kind == "FAIL" for kind, _ in self.lines)


@dataclass(frozen=True)
class VerificationReport:
    """The outcome of a verification; as text, one line per finding and the verdict last."""

    folder: str
    findings: Findings

    def __str__(self) -> str:
        lines = [f"{kind:<4} {text}" for kind, text in self.findings.lines]
        return "\n".join([*lines, self.verdict])

    @property
    def verdict(self) -> str:
        """The last line."""
        failures = self.findings.failures
        said = "verified" if not failures else f"NOT VERIFIED: {failures} failure{'s' if failures > 1 else ''}"
        return f"{self.folder}: {said}"


class NotVerifiedError(VerificationError):
    """Something does not hold; `report` has all findings, and so has the text."""

    def __init__(self, report: VerificationReport) -> None:
        super().__init__(f"\n{report}")
        self.report = report
