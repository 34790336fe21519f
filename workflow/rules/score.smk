# Score: read each reply's answer. Free, and repeated whenever the reader changes.
#
# Needs:  trials and replies.
# Leaves: outcomes/EXPERIMENT/MODEL/DATASET.parquet.


rule score_replies:
    input:
        trials=f"{RESULTS}/trials/{{experiment}}/{{dataset}}.parquet",
        replies=f"{RESULTS}/replies/{{experiment}}/{{model}}/{{dataset}}.parquet",
    output:
        outcomes=f"{RESULTS}/outcomes/{{experiment}}/{{model}}/{{dataset}}.parquet",
        record=f"{RESULTS}/outcomes/{{experiment}}/{{model}}/{{dataset}}.parquet.record.json",
    log:
        f"{LOGS}/score/{{experiment}}/{{model}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/score/{{experiment}}/{{model}}/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        key=key_of("score"),
    shell:
        "counterbalance --log {log:q} score --study {params.study:q} --experiment {wildcards.experiment:q}"
        " --model {wildcards.model:q} --dataset {wildcards.dataset:q}"
