# Query: ask the models; the only rule that can buy a reply.
#
# Needs:  trials and the frozen record. Replies go into ledger/ (declared by no rule), so a failed, killed or repeated
#         job asks only what is still unanswered.
# Leaves: replies/EXPERIMENT/MODEL/DATASET.parquet, derived from the ledger.


rule query_replies:
    input:
        trials=RESULTS + "/trials/{experiment}/{dataset}.parquet",
        frozen=frozen_record,
    output:
        replies=RESULTS + "/replies/{experiment}/{model}/{dataset}.parquet",
        record=RESULTS + "/replies/{experiment}/{model}/{dataset}.parquet.record.json",
    log:
        LOGS + "/query/{experiment}/{model}/{dataset}.log",
    benchmark:
        LOGS + "/query/{experiment}/{model}/{dataset}.tsv"
    params:
        study=STUDY_FILE,
        plan=plan_hash(study),
        key=key_of("query"),
    shell:
        "counterbalance --log {log:q} query --study {params.study:q} --experiment {wildcards.experiment:q}"
        " --model {wildcards.model:q} --dataset {wildcards.dataset:q} --progress plain"
