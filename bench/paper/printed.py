"""The numbers printed in the paper: its tables of datasets, of results, and of training, validation and test figures."""

from __future__ import annotations

_DATASETS = ("emotions", "yeast", "birds", "medical", "enron")
"""The paper's last column is the full mediamill: other data than `mediamill2k`, so it stands beside nothing here."""

DATASET_FACTS = {
    "emotions": ("6", "1.869", "0.311"),
    "yeast": ("14", "4.237", "0.303"),
    "birds": ("19", "1.014", "0.053"),
    "medical": ("45", "1.245", "0.028"),
    "enron": ("53", "3.378", "0.064"),
}
"""Labels, cardinality and density of each dataset."""

_TABLE = {
    "joint_accuracy": """
        BR     0.321 0.005  0.174 0.018  0.510 0.004  0.386 0.022  0.114 0.026
        NN     0.309 0.075  0.193 0.018  0.540 0.051  0.613 0.032  0.120 0.020
        MLWSE  0.327 0.058  0.201 0.013  0.541 0.041  0.640 0.025  0.124 0.022
        BOOMER 0.326 0.074  0.224 0.022  0.527 0.024  0.654 0.024  0.137 0.026
        pRSL   0.348 0.067  0.236 0.015  0.507 0.032  0.491 0.031  0.153 0.020""",
    "median_joint": """
        BR    -2.386 0.145 -5.772 0.198 -2.448 0.160
        NN    -2.105 0.267 -5.659 0.231 -1.547 0.409
        MLWSE -2.140 0.202 -5.512 0.227 -1.502 0.167
        pRSL  -1.839 0.273 -3.592 0.085 -2.458 0.156""",
    "median_labelwise": """
        BR    nan nan nan nan nan nan -1.584 0.091 -6.376 0.182
        NN    nan nan nan nan nan nan -0.750 0.133 -6.476 0.172
        MLWSE nan nan nan nan nan nan -1.125 0.110 -6.018 0.104
        pRSL  nan nan nan nan nan nan -1.565 0.120 -6.479 0.242""",
    "hamming_loss": """
        BR     0.179 0.019  0.188 0.003  0.042 0.003  0.017 0.001  0.045 0.001
        NN     0.183 0.024  0.191 0.005  0.039 0.003  0.012 0.001  0.046 0.001
        MLWSE  0.183 0.024  0.186 0.005  0.037 0.002  0.011 0.001  0.044 0.001
        BOOMER 0.183 0.024  0.188 0.005  0.041 0.003  0.011 0.001  0.046 0.001
        pRSL   0.182 0.022  0.190 0.005  0.043 0.002  0.015 0.001  0.046 0.001""",
}
"""The log-likelihoods are medians: of all labels together for the small datasets, label by label for the others."""

_PARTS = {
    "joint_accuracy": """
        train  0.351 0.015  0.227 0.010  0.516 0.010  0.500 0.019  0.153 0.010
        val    0.339 0.031  0.251 0.026  0.516 0.042  0.497 0.027  0.154 0.010
        test   0.348 0.067  0.236 0.015  0.507 0.032  0.491 0.031  0.153 0.020""",
    "median_joint": """
        train -1.802 0.077 -3.589 0.054 -2.534 0.060
        val   -1.921 0.241 -3.538 0.177 -2.532 0.269
        test  -1.839 0.273 -3.592 0.085 -2.458 0.156""",
    "median_labelwise": """
        train nan nan nan nan nan nan -1.587 0.022 -6.598 0.079
        val   nan nan nan nan nan nan -1.625 0.051 -6.564 0.178
        test  nan nan nan nan nan nan -1.565 0.120 -6.479 0.242""",
    "hamming_loss": """
        train  0.182 0.005  0.191 0.003  0.043 0.001  0.015 0.001  0.046 0.001
        val    0.181 0.018  0.188 0.004  0.042 0.004  0.015 0.001  0.046 0.001
        test   0.182 0.022  0.190 0.005  0.043 0.002  0.015 0.001  0.046 0.001""",
}


def _parse(tables: dict[str, str]) -> dict[tuple[str, str, str], tuple[float, float]]:
    numbers = {}
    for metric, table in tables.items():
        for line in table.strip().splitlines():
            row, *values = line.split()
            for dataset, mean, sd in zip(_DATASETS, map(float, values[::2]), map(float, values[1::2])):
                if mean == mean:
                    numbers[metric, row, dataset] = (mean, sd)
    return numbers


PRINTED = _parse(_TABLE)
"""Mean and standard deviation by metric, row of the paper's table of results, and dataset."""
PRINTED_PARTS = _parse(_PARTS)
"""The same by metric, part of the folds, and dataset, for pRSL."""
