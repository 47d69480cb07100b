"""Files on any file system that Hadoop knows."""

from __future__ import annotations

import os
from typing import Any

from ..errors import FileError


def read_text(path: str, spark: Any = None) -> str:
    """The text of a file: a local one, or one on a file system of Hadoop, such as `hdfs://` or `s3a://`."""
    if "://" not in path and os.path.exists(path):
        try:
            with open(path, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise FileError(f"cannot read `{path}`: {error}") from error
    if "://" not in path and spark is None:
        raise FileError(f"cannot open `{path}`: No such file or directory")
    file_system, place = _place(path, spark)
    if not file_system.exists(place):
        raise FileError(f"cannot open `{path}`: No such file or directory")
    stream = file_system.open(place)
    try:
        return str(_jvm(spark).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()


def write_text(path: str, text: str, spark: Any) -> None:
    """Writes a file. It is complete or absent: it is written beside its place first."""
    file_system, place = _place(path, spark)
    part = _jvm(spark).org.apache.hadoop.fs.Path(path + ".part")
    stream = file_system.create(part, True)
    try:
        stream.write(bytearray(text.encode("utf-8")))
    finally:
        stream.close()
    file_system.delete(place, False)
    if not file_system.rename(part, place):
        raise FileError(f"cannot write `{path}`")


def exists(path: str, spark: Any) -> bool:
    """Whether there is such a file."""
    file_system, place = _place(path, spark)
    return bool(file_system.exists(place))


def session(spark: Any = None) -> Any:
    """The given session, or the active one, or a new one."""
    from pyspark.sql import SparkSession

    return spark or SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _jvm(spark: Any) -> Any:
    return session(spark).sparkContext._jvm


def _place(path: str, spark: Any) -> tuple[Any, Any]:
    spark = session(spark)
    place = _jvm(spark).org.apache.hadoop.fs.Path(path)
    return place.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), place
