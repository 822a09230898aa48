"""Defaults of columns: what Spark finds in files that are older than the column, and in rows that leave it out."""
import datetime
from decimal import Decimal

from cluster import CATALOG

SCHEMA = "defaults"
WHEN = datetime.datetime(2020, 2, 29, 1, 2, 3, 456789)
COLUMNS = [
    ("INTEGER", "7", 7), ("BIGINT", "-9000000000", -9000000000), ("DOUBLE", "1.5", 1.5), ("REAL", "2.5", 2.5), ("VARCHAR", "'größe'", "größe"), ("BOOLEAN", "true", True),
    ("DATE", "DATE '1969-12-31'", datetime.date(1969, 12, 31)), ("TIMESTAMP", "TIMESTAMP '2020-02-29 01:02:03.456789'", WHEN),
    ("TIMESTAMPTZ", "TIMESTAMPTZ '2020-02-29 01:02:03.456789+00'", WHEN), ("DECIMAL(20,3)", "123.456", Decimal("123.456")), ("DECIMAL(9,2)", "-1.25", Decimal("-1.25")),
    ("BLOB", "X'0102'", bytearray(b"\x01\x02")), ("UUID", "'f79c3e09-677c-4bbd-a479-3f349cb785e7'", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
]


def test_spark_reads_defaults(spark, cluster):
    t = f"{CATALOG}.{SCHEMA}.t"
    adds = ";".join(f"ALTER TABLE {t} ADD COLUMN c{n} {sql} DEFAULT {value}" for n, (sql, value, _) in enumerate(COLUMNS))
    cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}; CREATE TABLE {t} (id BIGINT) WITH ('format-version' = '3'); INSERT INTO {t} VALUES (1), (2); {adds}; INSERT INTO {t} (id) VALUES (3)")
    want = [(n, *(value for _, _, value in COLUMNS)) for n in [1, 2, 3]]
    # The vectorised reader of Iceberg 1.11 fails on defaults of decimals ("Cannot cast default value to fixed[16]").
    assert sorted(tuple(r) for r in spark.read.option("vectorization-enabled", "false").table(t).collect()) == want
