"""Repeats the evaluation of the pRSL paper: multi-label methods on the same beliefs, folds and metrics."""
