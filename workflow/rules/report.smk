# Report: one self-contained HTML file for a person, and its figures.
#
# Needs:  estimates, predictions and the tables behind them.
# Leaves: report.html, figures/*.svg.


rule render_report:
    input:
        study=f"{RESULTS}/study.json",
        estimates=f"{RESULTS}/estimates.parquet",
        predictions=f"{RESULTS}/predictions.parquet",
        rejected=[f"{RESULTS}/rejected/{d.id}.parquet" for d in study.used_datasets()],
        templates=[str(path) for path in sorted(Path("workflow/report").glob("*.j2"))],
        frozen=frozen_record,
    output:
        html=report(
            f"{RESULTS}/report.html",
            category="Report",
            caption="../report/report.rst",
        ),
        record=f"{RESULTS}/report.html.record.json",
        hero=report(
            f"{RESULTS}/figures/hero.svg",
            category="Figures",
            caption="../report/hero.rst",
        ),
    log:
        f"{LOGS}/report.log",
    benchmark:
        f"{LOGS}/report.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("report"),
    shell:
        "counterbalance --log {log:q} report --study {params.study:q}"
