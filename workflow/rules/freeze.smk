# Freeze: fix plan, predictions, items and prompts before any reply is bought.
#
# Needs:  the preregistration and all trials. Runs only when asked for: `snakemake freeze_preregistration`.
# Leaves: preregistration/frozen/STUDY-N.json and .sha256 (written once, declared by no rule, so that Snakemake can
#         neither delete nor rebuild them), and a receipt.


rule freeze_preregistration:
    input:
        trials=[
            str(layout.trials(e.id, d.id).relative_to(study.root))
            for e, d in study.trial_sets()
        ],
        scouts=[
            f"{RESULTS}/scout/trials/{e.id}/{d.id}.parquet"
            for e, d in study.scouted_sets()
        ],
    output:
        f"{RESULTS}/freeze.receipt.json",
    log:
        f"{LOGS}/freeze.log",
    benchmark:
        f"{LOGS}/freeze.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        plan=frozen_plan,
    shell:
        "counterbalance --log {log:q} freeze --study {params.study:q}"
