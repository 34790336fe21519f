# Prepare: the study file to resolved settings, and source files to checked items.
#
# Needs:  the data files that the study names (local, or pinned hf:// paths with their hash).
# Leaves: study.json with every setting, items/DATASET.parquet, and rejected/DATASET.parquet with a reason for every excluded row.


rule resolve_study:
    input:
        STUDY_FILE,
    output:
        f"{RESULTS}/study.json",
        f"{RESULTS}/study.json.record.json",
    log:
        f"{LOGS}/resolve.log",
    benchmark:
        f"{LOGS}/resolve.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        key=key_of("resolve"),
    shell:
        "counterbalance --log {log:q} resolve --study {input:q}"


rule prepare_items:
    input:
        data_file,
    output:
        kept=f"{RESULTS}/items/{{dataset}}.parquet",
        kept_record=f"{RESULTS}/items/{{dataset}}.parquet.record.json",
        rejected=f"{RESULTS}/rejected/{{dataset}}.parquet",
        rejected_record=f"{RESULTS}/rejected/{{dataset}}.parquet.record.json",
    log:
        f"{LOGS}/prepare/{{dataset}}.log",
    benchmark:
        f"{LOGS}/prepare/{{dataset}}.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        key=key_of("prepare"),
    shell:
        "counterbalance --log {log:q} prepare --study {params.study:q} --dataset {wildcards.dataset:q}"
