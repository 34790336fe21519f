# Contrast: estimates per cell, then the family's correction and the verdict on every prediction.
#
# Needs:  outcomes, those of two experiments where one is compared with the other; the items of the family's other data
#         sets, which tell how many tests it has; for the predictions, the frozen record.
# Leaves: cells/EXPERIMENT/MODEL/DATASET.parquet, estimates.parquet, predictions.parquet.


rule estimate_cell:
    input:
        f"{RESULTS}/outcomes/{{experiment}}/{{model}}/{{dataset}}.parquet",
        counted=family_items,
    output:
        estimates=f"{RESULTS}/cells/{{experiment}}/{{model}}/{{dataset}}.parquet",
        record=f"{RESULTS}/cells/{{experiment}}/{{model}}/{{dataset}}.parquet.record.json",
    log:
        f"{LOGS}/contrast/{{experiment}}/{{model}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/contrast/{{experiment}}/{{model}}/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        key=key_of("contrast"),
    shell:
        "counterbalance --log {log:q} contrast --study {params.study:q} --experiment {wildcards.experiment:q}"
        " --model {wildcards.model:q} --dataset {wildcards.dataset:q}"


rule combine_estimates:
    input:
        cells=cell_estimates,
        compared=compared_outcomes,
        scouts=[f"{RESULTS}/scout/summary.json"] if SCOUTED else [],
        frozen=frozen_record,
    output:
        estimates=f"{RESULTS}/estimates.parquet",
        estimates_record=f"{RESULTS}/estimates.parquet.record.json",
        predictions=f"{RESULTS}/predictions.parquet",
        predictions_record=f"{RESULTS}/predictions.parquet.record.json",
    log:
        f"{LOGS}/combine.log",
    benchmark:
        f"{LOGS}/combine.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("combine"),
    shell:
        "counterbalance --log {log:q} combine --study {params.study:q}"
