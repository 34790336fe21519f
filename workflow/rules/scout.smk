# Scout: look at a cell in two orders of a few items, and leave out what the frozen rule says is not worth the sweep.
#
# Needs:  an experiment with `scout`; trials, the frozen record, and the preflight of a paid model. Replies go into ledger/
#         like any other, so the sweep of a kept cell buys none of them again. Never put rules behind the checkpoint into
#         a group.
# Leaves: scout/trials/EXPERIMENT/DATASET.parquet; scout/replies and scout/decisions for every cell; scout/summary.json.


rule expand_scout:
    input:
        kept=f"{RESULTS}/items/{{dataset}}.parquet",
        trials=f"{RESULTS}/trials/{{experiment}}/{{dataset}}.parquet",
        prompts=prompt_files,
    output:
        trials=f"{RESULTS}/scout/trials/{{experiment}}/{{dataset}}.parquet",
        record=f"{RESULTS}/scout/trials/{{experiment}}/{{dataset}}.parquet.record.json",
    log:
        f"{LOGS}/scout/trials/{{experiment}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/scout/trials/{{experiment}}/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        key=key_of("scout-trials"),
    shell:
        "counterbalance --log {log:q} scout-trials --study {params.study:q}"
        " --experiment {wildcards.experiment:q} --dataset {wildcards.dataset:q}"


rule scout_cell:
    input:
        trials=f"{RESULTS}/trials/{{experiment}}/{{dataset}}.parquet",
        scout=f"{RESULTS}/scout/trials/{{experiment}}/{{dataset}}.parquet",
        frozen=frozen_record,
        preflight=own_preflight,
    output:
        replies=f"{RESULTS}/scout/replies/{{experiment}}/{{model}}/{{dataset}}.parquet",
        replies_record=f"{RESULTS}/scout/replies/{{experiment}}/{{model}}/{{dataset}}.parquet.record.json",
        decision=f"{RESULTS}/scout/decisions/{{experiment}}/{{model}}/{{dataset}}.json",
        decision_record=f"{RESULTS}/scout/decisions/{{experiment}}/{{model}}/{{dataset}}.json.record.json",
    log:
        f"{LOGS}/scout/cells/{{experiment}}/{{model}}/{{dataset}}.log",
    benchmark:
        f"{LOGS}/scout/cells/{{experiment}}/{{model}}/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("scout"),
    shell:
        "counterbalance --log {log:q} scout --study {params.study:q} --experiment {wildcards.experiment:q}"
        " --model {wildcards.model:q} --dataset {wildcards.dataset:q} --progress plain"


checkpoint decide_cells:
    input:
        decisions=[f"{RESULTS}/scout/decisions/{c.name}.json" for c in SCOUTED],
        frozen=frozen_record,
    output:
        summary=f"{RESULTS}/scout/summary.json",
        record=f"{RESULTS}/scout/summary.json.record.json",
    log:
        f"{LOGS}/scout/decide.log",
    benchmark:
        f"{LOGS}/scout/decide.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("decide"),
    shell:
        "counterbalance --log {log:q} decide --study {params.study:q}"
