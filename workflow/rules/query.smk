# Query: ask the models. But for the preflight's one call a model and the scouts, only this rule can buy a reply.
#
# Needs:  trials, the frozen record, and the preflight of a paid model. Replies go into ledger/ (declared by no rule), so
#         a failed, killed or repeated job asks only what is still unanswered.
# Leaves: replies/EXPERIMENT/MODEL/DATASET.parquet, derived from the ledger.


rule query_replies:
    input:
        trials=f"{RESULTS}/trials/{{experiment}}/{{dataset}}.parquet",
        frozen=frozen_record,
        preflight=own_preflight,
        scout=scout_decision,
    output:
        replies=f"{RESULTS}/replies/{{experiment}}/{{model}}/{{dataset}}.parquet",
        record=f"{RESULTS}/replies/{{experiment}}/{{model}}/{{dataset}}.parquet.record.json",
    log:
        f"{LOGS}/query/{{experiment}}/{{model}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/query/{{experiment}}/{{model}}/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("query"),
    shell:
        "counterbalance --log {log:q} query --study {params.study:q} --experiment {wildcards.experiment:q}"
        " --model {wildcards.model:q} --dataset {wildcards.dataset:q} --progress plain"


# A dry run says what it will cost before anything is asked.
if any(re.fullmatch(r"--dry-?run|-[Ffkpt]*n\w*", word) for word in sys.argv[1:]):
    shell("counterbalance plan --study {STUDY_FILE:q} >&2")
