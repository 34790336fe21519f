"""Stage decide: which cells are asked in full, from all scouts of the study."""

from counterbalance.artifacts import write_record
from counterbalance.canonical import Json
from counterbalance.config import Study
from counterbalance.errors import ConfigError
from counterbalance.files import write_json
from counterbalance.rerun import code_sha256, settings_sha256
from counterbalance.scouting.outcome import CellDecision, decision_of, read_decision, summary_body
from counterbalance.spending.prices import show_usd
from counterbalance.stages.command import command_line


def decide(study: Study) -> str:
    """Write the summary of all scouts; return what is left out and what that saves, line by line.

    Raises
    ------
    ConfigError
        If the study has no scout.
    GateError
        If the plan is not the frozen one.
    InputError
        If a scout is missing or malformed.
    """
    from counterbalance.prereg.gate import check_gate

    cells = list(study.scouted_cells())
    if not cells:
        raise ConfigError(f"{study.path}: no experiment has a `scout`, so there is nothing to decide")
    frozen = check_gate(study, trials=False)
    layout = study.layout
    decisions = [decision_of(read_decision(study, cell)) for cell in cells]
    body = summary_body(decisions)
    write_json(layout.scout_summary, body)
    write_record(
        layout.scout_summary,
        study.root,
        stage="decide",
        inputs=[
            *(layout.scout_decision(cell.experiment.id, cell.model.id, cell.dataset.id) for cell in cells),
            frozen.path,
        ],
        command=command_line(study, "decide"),
        config_sha256=settings_sha256(study, "decide"),
        code_sha256=code_sha256("decide"),
        frozen_sha256=frozen.sha256,
    )
    return "\n".join([_total(body), *(_line(entry) for entry in decisions if entry.skipped)])


def _total(body: Json) -> str:
    cost = "" if body["saved_nano_usd"] is None else f", about {show_usd(body['saved_nano_usd'])}"
    saved = f"; saved: {body['saved_calls']:,} calls{cost}" if body["skipped"] else ""
    return f"scouts: {body['kept']} cells are asked in full, {body['skipped']} are skipped{saved}"


def _line(entry: CellDecision) -> str:
    return f"skipped {entry.cell}: {entry.reason}; {entry.left:,} calls not made"
