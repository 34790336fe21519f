# Prepare: source files to checked items.
#
# Needs:  the data files that the study names (local, or pinned hf:// paths with their hash).
# Leaves: items/DATASET.parquet, and rejected/DATASET.parquet with a reason for every excluded row.


def data_file(wildcards):
    path = study.dataset(wildcards.dataset).path
    return [] if path.startswith("hf://") else str(path)


rule prepare_items:
    input:
        data_file,
    output:
        kept=RESULTS + "/items/{dataset}.parquet",
        kept_record=RESULTS + "/items/{dataset}.parquet.record.json",
        rejected=RESULTS + "/rejected/{dataset}.parquet",
        rejected_record=RESULTS + "/rejected/{dataset}.parquet.record.json",
    log:
        LOGS + "/prepare/{dataset}.log",
    benchmark:
        LOGS + "/prepare/{dataset}.tsv"
    params:
        study=STUDY_FILE,
        key=key_of("prepare"),
    shell:
        "counterbalance --log {log:q} prepare --study {params.study:q} --dataset {wildcards.dataset:q}"
