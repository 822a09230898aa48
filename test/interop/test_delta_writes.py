"""delta-rs and Spark write the tables that Signet has written, in each way that they have, Signet reads each state and writes again, and they read that."""
import datetime as dt
import decimal
import os

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import delta
import matrix

pytestmark = pytest.mark.skipif(bool(os.environ.get("INTEROP_WRITER")), reason="the writer is not Signet")

COLUMNS = "id BIGINT, cat VARCHAR, price DECIMAL(9, 2), moment TIMESTAMPTZ, day DATE, tags VARCHAR[], s STRUCT(a INTEGER, b VARCHAR)"
SCHEMA = pa.schema([
    ("id", pa.int64()), ("cat", pa.string()), ("price", pa.decimal128(9, 2)), ("moment", pa.timestamp("us", "UTC")), ("day", pa.date32()),
    ("tags", pa.list_(pa.string())), ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
])


def row(i: int) -> dict:
    return {
        "id": i, "cat": ("a", "b c", None, "é/%")[i % 4], "price": None if i % 7 == 0 else decimal.Decimal(i * 7 - 300) / 100,
        "moment": dt.datetime(1969, 12, 31, 20, tzinfo=matrix.UTC) + dt.timedelta(minutes=i), "day": dt.date(2024, 2, 27) + dt.timedelta(days=i % 5),
        "tags": None if i % 6 == 0 else ["t", None][: i % 3], "s": None if i % 5 == 0 else {"a": i, "b": f"b{i % 3}"},
    }


def arrow(ids) -> pa.Table:
    return pa.Table.from_pylist([row(i) for i in ids], SCHEMA)


class Story:
    """A table with the rows that it should have, and everybody who has to agree."""

    def __init__(self, cluster, spark, name: str, partition: str = "", options: str = ""):
        self.cluster, self.spark, self.name, self.rows = cluster, spark, f"{delta.CATALOG}.story.{name}", {}
        self.path = cluster.delta / "story" / name
        part = f" PARTITIONED BY ({partition})" if partition else ""
        cluster.sql(f"CREATE TABLE {self.name} ({COLUMNS}){part}{options}")

    def put(self, ids):
        self.rows |= {i: row(i) for i in ids}

    def ours(self, ids, how: str = "INSERT INTO"):
        path = self.cluster.dir / f"story-{len(list(self.cluster.dir.iterdir()))}.parquet"
        matrix.pq.write_table(arrow(ids), path)
        self.cluster.sql(f"{how} {self.name} SELECT * FROM '{path}'")
        self.put(ids)

    def spark_rows(self, ids):
        path = self.cluster.dir / f"spark-{len(list(self.cluster.dir.iterdir()))}.parquet"
        matrix.pq.write_table(arrow(ids), path)
        return self.spark.read.parquet(str(path))

    def spark_sql(self, text: str):
        self.spark.sql(text.replace("{t}", f"delta.`{self.path}`")).collect()

    def agree(self, step: str, rs: bool = True):
        """All readers have the rows of the story. rs: delta-rs can read the table."""
        want = matrix.canonical(list(self.rows.values()))
        delta.check_log(self.path)
        names = ", ".join(SCHEMA.names)
        assert matrix.canonical(self.signet(f"SELECT {names} FROM {self.name}")) == want, f"Signet after: {step}"
        got = [r.asDict(recursive=True) for r in self.spark.read.format("delta").load(str(self.path)).selectExpr(*SCHEMA.names[:3], "CAST(moment AS STRING) AS moment", *SCHEMA.names[4:]).collect()]
        for r in got:
            r["moment"] = r["moment"] and dt.datetime.fromisoformat(r["moment"]).replace(tzinfo=matrix.UTC)
        assert matrix.canonical(got) == want, f"Spark after: {step}"
        if rs:
            assert matrix.canonical(delta.delta_rs(self.path, f"SELECT {names} FROM t")) == want, f"delta-rs after: {step}"

    def signet(self, query: str) -> list[dict]:
        """The rows of a query, with their types, by way of Flight SQL."""
        import adbc_driver_flightsql.dbapi as flight

        with flight.connect(f"grpc://{self.cluster.flight}") as c, c.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetch_arrow_table().to_pylist()


LAYOUTS = {"plain": "", "by_cat": "cat", "by_day": "day"}
EACH_LAYOUT = pytest.mark.parametrize("layout", ["plain", "by_cat", pytest.param("by_day", marks=pytest.mark.nightly)])


@EACH_LAYOUT
def test_delta_rs_writes(spark, cluster, layout):
    s = Story(cluster, spark, f"rs_{layout}", LAYOUTS[layout])
    by = [LAYOUTS[layout]] if LAYOUTS[layout] else None
    s.ours(range(0, 40))
    delta.append(s.path, arrow(range(40, 60)), by or ())
    s.put(range(40, 60))
    s.agree("an append")
    s.ours(range(60, 80))
    DeltaTable(str(s.path)).delete("id >= 10 AND id < 20")
    s.rows = {i: r for i, r in s.rows.items() if not 10 <= i < 20}
    s.agree("a DELETE")
    DeltaTable(str(s.path)).update(updates={"price": "CAST('1.25' AS DECIMAL(9, 2))"}, predicate="id < 5")
    for i in range(5):
        s.rows[i]["price"] = decimal.Decimal("1.25")
    s.agree("an UPDATE")
    s.cluster.sql(f"DELETE FROM {s.name} WHERE id % 3 = 0")
    s.rows = {i: r for i, r in s.rows.items() if i % 3}
    s.agree("our DELETE")
    DeltaTable(str(s.path)).optimize.compact()
    s.ours(range(80, 90))
    s.agree("its compaction")
    DeltaTable(str(s.path)).create_checkpoint()
    s.ours(range(90, 100))
    s.agree("its checkpoint")
    write_deltalake(str(s.path), arrow(range(200, 220)), mode="overwrite", partition_by=by)
    s.rows = {}
    s.put(range(200, 220))
    s.agree("an overwrite")
    s.cluster.sql(f"UPDATE {s.name} SET cat = 'ours' WHERE id < 210")
    for i in range(200, 210):
        s.rows[i]["cat"] = "ours"
    s.agree("our UPDATE")
    s.rows = {}
    s.ours(range(300, 320), "INSERT OVERWRITE")
    s.agree("our overwrite")
    delta.append(s.path, arrow(range(320, 330)), by or ())
    s.put(range(320, 330))
    s.agree("an append on top of it")


@EACH_LAYOUT
def test_spark_writes(spark, cluster, layout):
    s = Story(cluster, spark, f"spark_{layout}", LAYOUTS[layout])
    s.ours(range(0, 40))
    s.spark_rows(range(40, 60)).write.format("delta").mode("append").save(str(s.path))
    s.put(range(40, 60))
    s.agree("an append")
    s.spark_sql("DELETE FROM {t} WHERE id % 10 = 1")
    s.rows = {i: r for i, r in s.rows.items() if i % 10 != 1}
    s.ours(range(60, 80))
    s.agree("a DELETE")
    s.spark_sql("UPDATE {t} SET s = named_struct('a', -1, 'b', NULL) WHERE id < 6")
    for i in s.rows:
        if i < 6:
            s.rows[i]["s"] = {"a": -1, "b": None}
    s.agree("an UPDATE")
    s.cluster.sql(f"MERGE INTO {s.name} t USING (SELECT 2::BIGINT AS id, 'merged' AS cat UNION ALL SELECT 1000, 'new') u ON t.id = u.id "
                  "WHEN MATCHED THEN UPDATE SET cat = u.cat WHEN NOT MATCHED THEN INSERT (id, cat) VALUES (u.id, u.cat)")
    s.rows[2]["cat"] = "merged"
    s.rows[1000] = dict.fromkeys(SCHEMA.names) | {"id": 1000, "cat": "new"}
    s.agree("our MERGE")
    s.spark_rows(range(400, 420)).write.format("delta").mode("overwrite").save(str(s.path))
    s.rows = {}
    s.put(range(400, 420))
    s.agree("an overwrite")
    for i in range(420, 432):  # across the table's checkpoint
        s.spark_rows([i]).write.format("delta").mode("append").save(str(s.path))
    s.put(range(420, 432))
    s.ours(range(432, 440))
    s.agree("its checkpoint")
    s.spark_sql("OPTIMIZE {t}")
    s.ours(range(440, 450))
    s.agree("OPTIMIZE")


def test_deletion_vectors_of_spark(spark, cluster):
    """Spark keeps deleted rows in vectors; Signet reads them, appends beside them, and rewrites files that have them."""
    for layout in ("plain", "by_cat"):
        s = Story(cluster, spark, f"dv_{layout}", LAYOUTS[layout])
        s.ours(range(0, 200))
        s.spark_sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        s.spark_sql("DELETE FROM {t} WHERE id % 10 = 3")
        s.rows = {i: r for i, r in s.rows.items() if i % 10 != 3}
        assert any((a.get("add") or {}).get("deletionVector") for actions in delta.commits(s.path).values() for a in actions)
        s.agree("a DELETE with vectors")
        s.ours(range(200, 220))
        s.spark_sql("DELETE FROM {t} WHERE id % 10 = 4")
        s.rows = {i: r for i, r in s.rows.items() if i % 10 != 4}
        s.agree("another")
        s.cluster.sql(f"DELETE FROM {s.name} WHERE id % 10 = 5")
        s.rows = {i: r for i, r in s.rows.items() if i % 10 != 5}
        s.agree("our DELETE of rows in files with vectors")
        s.cluster.sql(f"UPDATE {s.name} SET cat = 'z' WHERE id < 50")
        for i in s.rows:
            if i < 50:
                s.rows[i]["cat"] = "z"
        s.agree("our UPDATE")


def test_files_of_spark(spark, cluster):
    """How Spark has stored what it writes: old timestamps, old lists, a column that came later, and one whose type was widened."""
    s = Story(cluster, spark, "files")
    s.ours(range(0, 10))
    for settings in ({"spark.sql.parquet.outputTimestampType": "INT96"}, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"}, {"spark.sql.parquet.writeLegacyFormat": "true"}):
        first = len(s.rows)
        for k, v in settings.items():
            spark.conf.set(k, v)
        try:
            s.spark_rows(range(first, first + 10)).write.format("delta").mode("append").save(str(s.path))
        finally:
            for k in settings:
                spark.conf.unset(k)
        s.put(range(first, first + 10))
        s.agree(str(settings))
    s.spark_sql("ALTER TABLE {t} ADD COLUMNS (more INT)")
    s.cluster.sql(f"INSERT INTO {s.name} (id, more) VALUES (500, 7)")
    s.rows[500] = dict.fromkeys(SCHEMA.names) | {"id": 500}
    s.agree("ADD COLUMNS")
    assert s.signet(f"SELECT id, more FROM {s.name} WHERE more IS NOT NULL") == [{"id": 500, "more": 7}]
    s.spark_sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    s.spark_sql("ALTER TABLE {t} ALTER COLUMN more TYPE BIGINT")
    s.cluster.sql(f"INSERT INTO {s.name} (id, more) VALUES (501, {2**40})")
    s.rows[501] = dict.fromkeys(SCHEMA.names) | {"id": 501}
    s.agree("a widened type", rs=False)  # delta-rs 1.6 does not know the feature
    assert s.signet(f"SELECT sum(more)::BIGINT AS n FROM {s.name}") == [{"n": 7 + 2**40}]
