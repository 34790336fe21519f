"""The calibration study: how often tests reject and intervals cover where the truth is planted."""
