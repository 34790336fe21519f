"""Where everything lies, in one place: nothing else in the package puts a path together."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """Paths of one study below the project's folder.

    Replies are bought into `ledger/`, outside `results/`, so that neither Snakemake nor a tidy user deletes them
    with the tables that can be made again for free.
    """

    root: Path
    study: str

    @property
    def results(self) -> Path:
        return self.root / "results" / self.study

    @property
    def resolved_config(self) -> Path:
        return self.results / "study.json"

    def items(self, dataset: str) -> Path:
        return self.results / "items" / f"{dataset}.parquet"

    def rejected(self, dataset: str) -> Path:
        return self.results / "rejected" / f"{dataset}.parquet"

    def trials(self, experiment: str, dataset: str) -> Path:
        return self.results / "trials" / experiment / f"{dataset}.parquet"

    def replies(self, experiment: str, model: str, dataset: str) -> Path:
        return self.results / "replies" / experiment / model / f"{dataset}.parquet"

    def outcomes(self, experiment: str, model: str, dataset: str) -> Path:
        return self.results / "outcomes" / experiment / model / f"{dataset}.parquet"

    def cell_estimates(self, experiment: str, model: str, dataset: str) -> Path:
        return self.results / "cells" / experiment / model / f"{dataset}.parquet"

    @property
    def estimates(self) -> Path:
        return self.results / "estimates.parquet"

    @property
    def predictions(self) -> Path:
        return self.results / "predictions.parquet"

    @property
    def report(self) -> Path:
        return self.results / "report.html"

    @property
    def figures(self) -> Path:
        return self.results / "figures"

    @property
    def manifest(self) -> Path:
        return self.results / "manifest.json"

    @property
    def receipt(self) -> Path:
        return self.results / "freeze.receipt.json"

    @property
    def verification(self) -> Path:
        return self.results / "verification.txt"

    @property
    def frozen_folder(self) -> Path:
        return self.root / "preregistration" / "frozen"

    def frozen(self, number: int) -> Path:
        return self.frozen_folder / f"{self.study}-{number}.json"

    def frozen_sum(self, number: int) -> Path:
        return self.frozen_folder / f"{self.study}-{number}.sha256"

    def preflight(self, experiment: str, model: str) -> Path:
        return self.results / "preflight" / experiment / f"{model}.json"

    def scout_trials(self, experiment: str, dataset: str) -> Path:
        return self.results / "scout" / "trials" / experiment / f"{dataset}.parquet"

    def scout_replies(self, experiment: str, model: str, dataset: str) -> Path:
        return self.results / "scout" / "replies" / experiment / model / f"{dataset}.parquet"

    def scout_decision(self, experiment: str, model: str, dataset: str) -> Path:
        return self.results / "scout" / "decisions" / experiment / model / f"{dataset}.json"

    @property
    def scout_summary(self) -> Path:
        return self.results / "scout" / "summary.json"

    @property
    def ledgers(self) -> Path:
        return self.root / "ledger" / self.study

    @property
    def purse(self) -> Path:
        return self.ledgers / "purse.sqlite"

    def ledger(self, experiment: str, model: str, dataset: str) -> Path:
        return self.ledgers / experiment / model / f"{dataset}.sqlite"
