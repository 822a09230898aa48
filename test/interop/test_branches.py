"""Rows that are changed on a branch, by us and by Spark in turns, and then published."""
import pytest

from cluster import CATALOG
from test_spark import OURS

SCHEMA = "branches"
pytestmark = pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")


@pytest.fixture(scope="module", autouse=True)
def schema(cluster):
    cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [2, 3])
def test_row_level_statements(spark, cluster, version, mode):
    short = f"{SCHEMA}.v{version}_{mode.replace('-', '_')}"
    name, read = f"{CATALOG}.{short}", "VERSION AS OF 'audit'"
    modes = "".join(f", 'write.{op}.mode' = '{mode}'" for op in ("delete", "update", "merge"))
    cluster.sql(
        f"CREATE TABLE {name} PARTITIONED BY (bucket(2, id)) WITH ('format-version' = '{version}'{modes}) AS SELECT i AS id, CAST(i AS INTEGER) AS n FROM range(20) r(i);"
        f"ALTER TABLE {name} CREATE BRANCH audit"
    )
    main = {i: i for i in range(20)}
    rows = dict(main)
    lineage = {}

    def check(at, want):
        assert {r["id"]: r["n"] for r in cluster.sql(f"SELECT id, n FROM {name} {at}".strip())} == want
        columns = "id, n, _row_id" if version == 3 else "id, n"
        got = spark.sql(f"SELECT {columns} FROM {name} {at}").collect()
        assert len(got) == len(want) and {r[0]: r[1] for r in got} == want
        if version == 3:
            ids = {r[0]: r[2] for r in got}
            assert None not in ids.values() and len(set(ids.values())) == len(ids)
            if at == read:
                assert all(ids[i] == lineage[i] for i in ids if i in lineage), "a row keeps its id"
                lineage.update(ids)
        t = cluster.pyiceberg().load_table(tuple(short.split(".")))
        snap = t.refs()["audit" if at == read else "main"].snapshot_id
        got = t.scan(snapshot_id=snap).to_arrow().to_pylist()
        assert len(got) == len(want) and {r["id"]: r["n"] for r in got} == want

    check(read, rows)
    cluster.sql(
        f"DELETE FROM {name}.branch_audit WHERE id < 4;"
        f"UPDATE {name}.branch_audit SET n = n + 100 WHERE id IN (5, 6);"
        f"MERGE INTO {name}.branch_audit AS t USING (SELECT i FROM range(7, 9) r(i) UNION ALL SELECT 30) AS s ON t.id = s.i "
        "WHEN MATCHED AND t.id = 7 THEN DELETE WHEN MATCHED THEN UPDATE SET n = -1 WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.i, 300)"
    )
    rows = {i: n for i, n in rows.items() if i >= 4 and i != 7} | {5: 105, 6: 106, 8: -1, 30: 300}
    check(read, rows)
    check("", main)

    spark.sql(f"DELETE FROM {name}.branch_audit WHERE id = 10")
    spark.sql(f"UPDATE {name}.branch_audit SET n = -2 WHERE id IN (5, 11)")
    spark.sql(f"INSERT INTO {name}.branch_audit VALUES (40, 400)")
    rows = {i: n for i, n in rows.items() if i != 10} | {5: -2, 11: -2, 40: 400}
    check(read, rows)

    cluster.sql(f"UPDATE {name}.branch_audit SET n = -3 WHERE id IN (11, 40, 12); DELETE FROM {name}.branch_audit WHERE id = 30")
    rows = {i: n for i, n in rows.items() if i != 30} | {11: -3, 40: -3, 12: -3}
    check(read, rows)
    check("", main)

    forward = f"CALL {CATALOG}.system.fast_forward('{short}', 'main', 'audit')"
    (cluster.sql if mode == "copy-on-write" else spark.sql)(forward)
    check("", rows)
