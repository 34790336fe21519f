# Preflight: one call per experiment and paid model, before anything else is spent. Free models need none.
#
# A model passes only when all others were tried too, so what one of them refuses stops the study. One without key, credit
# or reply (exit codes 6, 10, 11, 12) stops only its own cells: its try ends well, and is made again by the next run.
#
# Needs:  trials and the frozen record. The reply goes into ledger/ like any other, so the sweep does not buy it again.
# Leaves: preflight/EXPERIMENT/MODEL.json: what was sent, what came back, what it cost; and in .tried/, which is no
#         artifact, that a model was tried, with a line for each time in vain.


rule try_model:
    input:
        trials=first_trials,
        frozen=frozen_record,
    output:
        touch(f"{RESULTS}/.tried/{{experiment}}/{{model}}"),
    log:
        f"{LOGS}/try/{{experiment}}/{{model}}.log",
    benchmark:
        f"{LOGS}/try/{{experiment}}/{{model}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
        key=key_of("preflight"),
        in_vain=tries_in_vain,
    shell:
        "counterbalance --log {log:q} preflight --study {params.study:q}"
        " --experiment {wildcards.experiment:q} --model {wildcards.model:q}"
        " || case $? in 6|10|11|12) echo waits >> {output:q}.waits ;; *) exit $? ;; esac"


rule preflight_model:
    input:
        trials=first_trials,
        frozen=frozen_record,
        tried=f"{RESULTS}/.tried/{{experiment}}/{{model}}",
        others=others_tried,
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
