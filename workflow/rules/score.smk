# Score: read each reply's answer. Free, and repeated whenever the reader changes.
#
# Needs:  trials and replies.
# Leaves: outcomes/EXPERIMENT/MODEL/DATASET.parquet.


rule score_replies:
    input:
        trials=RESULTS + "/trials/{experiment}/{dataset}.parquet",
        replies=RESULTS + "/replies/{experiment}/{model}/{dataset}.parquet",
    output:
        outcomes=RESULTS + "/outcomes/{experiment}/{model}/{dataset}.parquet",
        record=RESULTS + "/outcomes/{experiment}/{model}/{dataset}.parquet.record.json",
    log:
        LOGS + "/score/{experiment}/{model}/{dataset}.log",
    benchmark:
        LOGS + "/score/{experiment}/{model}/{dataset}.tsv"
    params:
        study=STUDY_FILE,
        key=key_of("score"),
    shell:
        "counterbalance --log {log:q} score --study {params.study:q} --experiment {wildcards.experiment:q}"
        " --model {wildcards.model:q} --dataset {wildcards.dataset:q}"
