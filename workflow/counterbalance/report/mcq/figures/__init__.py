"""The figures of a multiple-choice experiment, one module each; every function returns a drawn figure."""
