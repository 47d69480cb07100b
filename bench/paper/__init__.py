"""The evaluation of the pRSL paper, repeated: multi-label methods on the same beliefs, folds and metrics."""
