"""Scoring and learning on Apache Spark: `pip install prsl[spark]`, with Java 17.

>>> from prsl.spark import RuleStackerModel, RuleStackerTrainer                              # doctest: +SKIP
>>> model = RuleStackerModel.load("warehouse.prsl")                                           # doctest: +SKIP
>>> scored = model.score(df, beliefs={"activity": ["p_walk", "p_norm", "p_over"]})            # doctest: +SKIP

`docs/spark.md` describes both, and how the package reaches the executors.
"""

from __future__ import annotations

import os
import sys

try:
    import pyarrow  # noqa: F401
    import pyspark
except ImportError as error:
    raise ImportError(
        f"prsl.spark needs PySpark 4 and pyarrow ({error}); install them with `pip install prsl[spark]`, and Java 17"
    ) from error

if int(pyspark.__version__.split(".")[0]) < 4:
    raise ImportError(f"prsl.spark needs PySpark 4, and {pyspark.__version__} is installed; `pip install prsl[spark]`")

# Executors would otherwise run the first `python3` of their path, which may be another one.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

from ._scoring import RuleStackerModel  # noqa: E402
from ._training import RuleStackerTrainer  # noqa: E402

__all__ = ["RuleStackerModel", "RuleStackerTrainer"]
