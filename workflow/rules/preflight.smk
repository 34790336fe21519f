# Preflight: one call per experiment and paid model, before anything else is spent. Free models need none.
#
# Needs:  trials and the frozen record. The reply goes into ledger/ like any other, so the sweep does not buy it again.
# Leaves: preflight/EXPERIMENT/MODEL.json: what was sent, what came back, what it cost.


rule preflight_model:
    input:
        trials=first_trials,
        frozen=frozen_record,
    output:
        seen=f"{RESULTS}/preflight/{{experiment}}/{{model}}.json",
        record=f"{RESULTS}/preflight/{{experiment}}/{{model}}.json.record.json",
    log:
        f"{LOGS}/preflight/{{experiment}}/{{model}}.log",
    benchmark:
        f"{LOGS}/preflight/{{experiment}}/{{model}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("preflight"),
    shell:
        "counterbalance --log {log:q} preflight --study {params.study:q}"
        " --experiment {wildcards.experiment:q} --model {wildcards.model:q}"
