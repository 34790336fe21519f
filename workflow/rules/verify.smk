# Verify: list every artifact with its hashes, then check them all and derive the numbers again.
#
# Needs:  the report and everything behind it.
# Leaves: manifest.json, and verification.txt with the verdict (which the manifest does not list).


rule write_manifest:
    input:
        f"{RESULTS}/report.html",
        f"{RESULTS}/report.html.record.json",
    output:
        f"{RESULTS}/manifest.json",
    log:
        f"{LOGS}/manifest.log",
    benchmark:
        f"{LOGS}/manifest.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        study=STUDY_FILE,
        key=key_of("manifest"),
    shell:
        "counterbalance --log {log:q} manifest --study {params.study:q}"


rule verify_results:
    input:
        f"{RESULTS}/manifest.json",
    output:
        f"{RESULTS}/verification.txt",
    log:
        f"{LOGS}/verify.log",
    benchmark:
        f"{LOGS}/verify.tsv"
    conda:
        "../../envs/counterbalance.yaml"
    params:
        key=key_of("manifest"),
    shell:
        'counterbalance --log {log:q} verify "$(dirname {input:q})" --output {output:q}'
