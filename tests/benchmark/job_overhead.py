"""What one Snakemake job costs around its command: the same jobs with a command that does nothing, and with ours."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
SNAKEFILE = """\
rule all:
    input: expand("out/{{n}}", n=range({jobs}))
rule one:
    output: "out/{{n}}"
    shell: "{command} && touch {{output:q}}"
"""


def main() -> None:
    empty = run("true", 1)
    for what, command in (("true", "true"), ("counterbalance --version", "counterbalance --version > /dev/null")):
        seconds = run(command, JOBS)
        print(f"{what:<26} {JOBS} jobs {seconds:6.1f} s; {1000 * (seconds - empty) / (JOBS - 1):6.0f} ms a job")
    print(f"fixed start of Snakemake with one job: {empty:.1f} s")


def run(command: str, jobs: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "Snakefile").write_text(SNAKEFILE.format(jobs=jobs, command=command), encoding="utf-8")
        start = time.perf_counter()
        subprocess.run(["snakemake", "--cores", "1", "--quiet", "all"], cwd=folder, check=True, capture_output=True)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
