# Expand: items to rendered prompts, one per arrangement and repeat, the same for every model.
#
# Needs:  items, the prompt template and, where named, the examples.
# Leaves: trials/EXPERIMENT/DATASET.parquet.


rule expand_trials:
    input:
        kept=f"{RESULTS}/items/{{dataset}}.parquet",
        prompts=prompt_files,
    output:
        trials=f"{RESULTS}/trials/{{experiment}}/{{dataset}}.parquet",
        record=f"{RESULTS}/trials/{{experiment}}/{{dataset}}.parquet.record.json",
    log:
        f"{LOGS}/expand/{{experiment}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/expand/{{experiment}}/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        key=key_of("expand"),
    shell:
        "counterbalance --log {log:q} expand --study {params.study:q}"
        " --experiment {wildcards.experiment:q} --dataset {wildcards.dataset:q}"
