# Expand: items to rendered prompts, one per arrangement and repeat, the same for every model.
#
# Needs:  items, the prompt template and, where named, the examples.
# Leaves: trials/EXPERIMENT/DATASET.parquet.


def prompt_files(wildcards):
    prompt = study.experiment(wildcards.experiment).prompt
    return [prompt.template] + ([prompt.examples] if prompt.examples else [])


rule expand_trials:
    input:
        kept=RESULTS + "/items/{dataset}.parquet",
        prompts=prompt_files,
    output:
        trials=RESULTS + "/trials/{experiment}/{dataset}.parquet",
        record=RESULTS + "/trials/{experiment}/{dataset}.parquet.record.json",
    log:
        LOGS + "/expand/{experiment}/{dataset}.log",
    benchmark:
        LOGS + "/expand/{experiment}/{dataset}.tsv"
    params:
        study=STUDY_FILE,
        key=key_of("expand"),
    shell:
        "counterbalance --log {log:q} expand --study {params.study:q}"
        " --experiment {wildcards.experiment:q} --dataset {wildcards.dataset:q}"
