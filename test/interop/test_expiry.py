"""What Signet's scheduler expires is gone for the others, and nothing else: they read on, and write on."""
import pathlib
import time

import pyarrow
import pytest

from cluster import CATALOG

SCHEMA = "expiry"


def shrunk(cluster, name: str, most: int):
    """Waits until a table has at most so many snapshots."""
    for _ in range(600):
        t = cluster.pyiceberg().load_table((SCHEMA, name))
        if len(t.snapshots()) <= most:
            return t
        time.sleep(0.1)
    raise AssertionError([s.snapshot_id for s in t.snapshots()])


@pytest.mark.parametrize("version", [2, 3])
def test_scheduled_expiry_beside_others(spark, filled, version):
    cluster, name = filled.cluster, f"t{version}"
    t = f"{CATALOG}.{SCHEMA}.{name}"
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{SCHEMA}")
    spark.sql(
        f"CREATE TABLE {t} (id BIGINT, name STRING) USING iceberg TBLPROPERTIES ('format-version'='{version}', 'history.expire.max-snapshot-age-ms'='1',"
        "'write.metadata.delete-after-commit.enabled'='true','write.metadata.previous-versions-max'='2','write.delete.mode'='merge-on-read')"
    )
    spark.sql(f"INSERT INTO {t} VALUES (1, 'spark'), (2, 'spark')")
    spark.sql(f"DELETE FROM {t} WHERE id = 2")
    expected = [(1, "spark")]
    for n in range(3):
        cluster.sql(f"INSERT INTO {t} VALUES ({10 + n}, 'signet'); DELETE FROM {t} WHERE id = {9 + n} AND name = 'signet'")
        expected = [r for r in expected if r != (9 + n, "signet")] + [(10 + n, "signet")]
        spark.sql(f"INSERT INTO {t} VALUES ({20 + n}, 'spark')")
        expected.append((20 + n, "spark"))
        if version == 2:
            cluster.pyiceberg().load_table((SCHEMA, name)).append(pyarrow.table({"id": [30 + n], "name": ["pyiceberg"]}))
            expected.append((30 + n, "pyiceberg"))
    cluster.sql(f"INSERT INTO {t} VALUES (40, 'signet'); INSERT INTO {t} VALUES (41, 'signet'); INSERT INTO {t} VALUES (42, 'signet')")
    expected += [(40, "signet"), (41, "signet"), (42, "signet")]
    for n in range(2):
        table = shrunk(cluster, name, 3 + n)  # two of Signet's since the last expiry, and Spark's
        ours = sorted((r["id"], r["name"]) for r in cluster.sql(f"SELECT id, name FROM {t}"))
        assert ours == sorted(expected)
        assert sorted(tuple(r) for r in spark.sql(f"SELECT id, name FROM {t}").collect()) == ours
        if version == 2:
            assert sorted((r["id"], r["name"]) for r in table.scan().to_arrow().to_pylist()) == ours
        assert len(table.metadata.metadata_log) <= 2
        for entry in table.metadata.metadata_log:
            assert pathlib.Path(entry.metadata_file.removeprefix("file://")).exists()
        spark.sql(f"INSERT INTO {t} VALUES (50, 'spark')")
        expected.append((50, "spark"))
