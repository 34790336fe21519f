# Entry point for `snakemake` typed at the top of the project; the workflow itself is workflow/Snakefile.


include: "workflow/Snakefile"


# An included file loses its default target, and `snakemake` would do nothing and call it success.
workflow.default_target = "all"
