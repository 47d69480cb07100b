"""Numbers of threads."""

from __future__ import annotations

import numbers

import joblib

from .errors import ArgumentError


def of_jobs(n_jobs: object) -> int:
    """The number of threads for `n_jobs`, as in scikit-learn.

    `None` means 1, or the setting of `joblib.parallel_config`. -1 means all cores, -2 all but one.
    """
    return int(joblib.effective_n_jobs(_checked("n_jobs", n_jobs)))


def of_threads(threads: object) -> int | None:
    """The number of threads; `None` means one per core. Negative numbers count as in `n_jobs`."""
    checked = _checked("threads", threads)
    if checked is None or checked > 0:
        return checked
    return max(int(joblib.cpu_count()) + 1 + checked, 1)


def _checked(name: str, value: object) -> int | None:
    if value is None:
        return None
    if not isinstance(value, numbers.Integral) or value == 0:
        raise ArgumentError(f"{name} is {value!r}, expected a whole number other than 0, or None")
    return int(value)
