"""Signet reads what Spark and PyIceberg leave behind: position deletes, deletion vectors, changed schemas and partitionings, branches, tags, older versions."""
import pytest

from cluster import CATALOG

READS = "reads"


@pytest.fixture(scope="module")
def space(spark, filled):
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.{READS}")
    return filled.cluster


def both(spark, cluster, query: str):
    """A query's rows by Spark and by Signet."""
    theirs = sorted(tuple(None if v is None else str(v) for v in r) for r in spark.sql(query).collect())
    ours = sorted(tuple(None if v is None else str(v) for v in r.values()) for r in cluster.sql(query))
    return theirs, ours


def same(spark, cluster, query: str):
    theirs, ours = both(spark, cluster, query)
    assert ours == theirs, query
    return ours


MOR = "'write.delete.mode'='merge-on-read','write.update.mode'='merge-on-read','write.merge.mode'='merge-on-read','write.distribution-mode'='none'"


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition", ["", "PARTITIONED BY (bucket(4, id))", "PARTITIONED BY (part)"])
def test_rows_that_spark_deletes(spark, space, version, partition):
    t = f"{CATALOG}.{READS}.mor_{version}_{len(partition)}"
    spark.sql(f"CREATE TABLE {t} (id BIGINT, part INT, name STRING) USING iceberg {partition} TBLPROPERTIES ('format-version'='{version}',{MOR})")
    for n in range(3):
        spark.sql(f"INSERT INTO {t} SELECT id + {n * 1000}, CAST(id % 3 AS INT), concat('n', id) FROM range(1000)")
    spark.sql(f"DELETE FROM {t} WHERE id % 7 = 1")
    spark.sql(f"DELETE FROM {t} WHERE id BETWEEN 100 AND 150")
    spark.sql(f"UPDATE {t} SET name = 'changed' WHERE id % 11 = 5")
    spark.sql(f"INSERT INTO {t} VALUES (1, 1, 'again')")
    deletes = spark.sql(f"SELECT count(*) FROM {t}.all_delete_files").collect()[0][0]
    assert deletes > 0, "or this tests nothing"
    rows = same(spark, space, f"SELECT id, part, name FROM {t}")
    assert len(rows) > 2000
    same(spark, space, f"SELECT count(*), sum(id), count(DISTINCT name) FROM {t}")
    same(spark, space, f"SELECT id FROM {t} WHERE part = 1 AND id < 300")
    same(spark, space, f"SELECT part, count(*) FROM {t} GROUP BY part")


def test_schema_changes(spark, space):
    t = f"{CATALOG}.{READS}.evolved"
    spark.sql(f"CREATE TABLE {t} (id INT, f FLOAT, d DECIMAL(5,2), s STRUCT<a:INT,b:STRING>, gone STRING, old STRING) USING iceberg PARTITIONED BY (old) TBLPROPERTIES ({MOR})")
    spark.sql(f"INSERT INTO {t} VALUES (1, 1.5, 1.25, named_struct('a', 1, 'b', 'x'), 'g', 'p'), (2, NULL, NULL, NULL, NULL, NULL)")
    for change in [
        "ALTER COLUMN id TYPE BIGINT", "ALTER COLUMN f TYPE DOUBLE", "ALTER COLUMN d TYPE DECIMAL(12,2)", "RENAME COLUMN old TO fresh", "DROP COLUMN gone",
        "ADD COLUMN gone INT", "ADD COLUMN s.c DOUBLE", "RENAME COLUMN s.a TO z", "ALTER COLUMN fresh FIRST", "DROP PARTITION FIELD old", "ADD PARTITION FIELD bucket(2, id)",
    ]:
        spark.sql(f"ALTER TABLE {t} {change}")
    spark.sql(f"INSERT INTO {t} (id, f, d, fresh, gone, s) VALUES (3000000000, 2.5, 1234567890.25, 'q', 7, NULL)")
    spark.sql(f"DELETE FROM {t} WHERE id = 2")
    same(spark, space, f"SELECT id, f, d, fresh, gone, s.z, s.b, s.c FROM {t}")
    same(spark, space, f"SELECT id FROM {t} WHERE fresh = 'p'")
    same(spark, space, f"SELECT id FROM {t} WHERE id > 2000000000")


def test_branches_tags_and_versions(spark, space):
    t = f"{CATALOG}.{READS}.refs"
    spark.sql(f"CREATE TABLE {t} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {t} VALUES (1)")
    first = spark.sql(f"SELECT snapshot_id FROM {t}.snapshots").collect()[0][0]
    spark.sql(f"ALTER TABLE {t} CREATE TAG `v 1`")
    spark.sql(f"ALTER TABLE {t} CREATE BRANCH audit")
    spark.sql(f"INSERT INTO {t}.branch_audit VALUES (2)")
    spark.sql(f"INSERT INTO {t} VALUES (3)")
    spark.sql(f"ALTER TABLE {t} ADD COLUMN more STRING")
    same(spark, space, f"SELECT id FROM {t}")
    same(spark, space, f"SELECT id FROM {t} FOR VERSION AS OF {first}")
    same(spark, space, f"SELECT * FROM {t} VERSION AS OF 'v 1'")
    same(spark, space, f"SELECT id FROM {t} VERSION AS OF 'audit'")
    assert sorted(r["id"] for r in space.sql(f"SELECT id FROM {t}.branch_audit")) == [1, 2]
    assert [r["id"] for r in space.sql(f'SELECT id FROM {t}."tag_v 1"')] == [1]


def test_initial_defaults(spark, space):
    """Spark cannot set them; the metadata can."""
    from pyiceberg.types import LongType

    t = f"{CATALOG}.{READS}.plain"
    spark.sql(f"CREATE TABLE {t} (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {t} VALUES (1), (2)")
    table = space.pyiceberg().load_table((READS, "plain"))
    with table.update_schema() as u:
        u.add_column("later", LongType())
    table.delete("id = 1")
    assert space.sql(f"SELECT id, later FROM {t}") == [{"id": 2, "later": None}]


def test_files_without_ids_are_read_by_the_name_mapping(spark, space, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField, StringType

    catalog = space.pyiceberg()
    table = catalog.create_table((READS, "added"), Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType())))
    pq.write_table(pa.table({"name": ["a", "b"], "id": [1, 2]}), tmp_path / "f.parquet")
    table.add_files([f"file://{tmp_path}/f.parquet"])
    with table.update_schema() as u:
        u.rename_column("name", "title")
    t = f"{CATALOG}.{READS}.added"
    assert space.sql(f"SELECT id, title FROM {t} ORDER BY id") == [{"id": 1, "title": "a"}, {"id": 2, "title": "b"}]


@pytest.mark.parametrize("granularity", ["file", pytest.param("partition", marks=pytest.mark.nightly)])
def test_merge_on_read_in_turns(spark, space, granularity):
    """Spark and we delete and update rows of the same files in turns, in version 2, over a change of the partitioning, and on into version 3."""
    name = f"turns_{granularity}"
    t = f"{CATALOG}.{READS}.{name}"
    spark.sql(f"CREATE TABLE {t} (id BIGINT, v BIGINT) USING iceberg PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version'='2',{MOR},'write.delete.granularity'='{granularity}')")
    rows = {}
    for n in range(3):
        spark.sql(f"INSERT INTO {t} SELECT id + {n * 100}, id FROM range(100)")
        rows |= {n * 100 + i: i for i in range(100)}

    def state(step, pyiceberg=True):
        assert {r[0]: r[1] for r in spark.sql(f"SELECT id, v FROM {t}").collect()} == rows, f"Spark, {step}"
        assert {int(r["id"]): int(r["v"]) for r in space.sql(f"SELECT id, v FROM {t}")} == rows, f"Signet, {step}"
        if pyiceberg:
            got = space.pyiceberg().load_table((READS, name)).scan().to_arrow().to_pylist()
            assert len(got) == len(rows) and {r["id"]: r["v"] for r in got} == rows, f"PyIceberg, {step}"

    def delete(engine, rest):
        engine(f"DELETE FROM {t} WHERE id % 20 = {rest}")
        for i in [i for i in rows if i % 20 == rest]:
            del rows[i]

    def update(engine, rest):
        engine(f"UPDATE {t} SET v = v + 1000 WHERE id % 20 = {rest}")
        for i in rows:
            rows[i] += 1000 if i % 20 == rest else 0

    for step, (engine, d, u) in enumerate([(spark.sql, 0, 1), (space.sql, 2, 3), (spark.sql, 4, 3), (space.sql, 1, 5)]):
        delete(engine, d)
        update(engine, u)
        state(f"version 2, step {step}")
        if step == 1:
            space.sql(f"ALTER TABLE {t} ADD PARTITION FIELD truncate(100, id)")
    space.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')")
    for step, (engine, d, u) in enumerate([(space.sql, 6, 5), (spark.sql, 7, 8), (space.sql, 8, 9)]):
        delete(engine, d)
        update(engine, u)
        state(f"version 3, step {step}")
        two = spark.sql(f"SELECT file_path FROM {t}.files WHERE content = 0").count()
        vectors = [r[0] for r in spark.sql(f"SELECT referenced_data_file FROM {t}.delete_files WHERE file_format = 'PUFFIN'").collect()]
        assert vectors and len(vectors) == len(set(vectors)) <= two, "one deletion vector for a data file"
    ids = [r[0] for r in spark.sql(f"SELECT _row_id FROM {t}").collect()]
    assert None not in ids and len(ids) == len(set(ids))
    space.sql(f"CALL system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))")
    state("compacted")
    assert {r[0] for r in spark.sql(f"SELECT _row_id FROM {t}").collect()} == set(ids)
    vectors = spark.sql(f"SELECT count(*) FROM {t}.delete_files WHERE file_format = 'PUFFIN'").collect()[0][0]
    assert vectors == 0, "what the rewritten files had deleted is gone with them"
