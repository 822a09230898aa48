"""Write-audit-publish: snapshots that one engine has staged are published by the other."""
import pytest

from cluster import CATALOG
from test_spark import OURS

SCHEMA = "staged"
pytestmark = pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")


@pytest.fixture(scope="module", autouse=True)
def schema(cluster):
    cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")


class Table:
    def __init__(self, cluster, spark, name, version, properties=""):
        self.cluster, self.spark, self.short, self.name, self.version = cluster, spark, f"{SCHEMA}.{name}", f"{CATALOG}.{SCHEMA}.{name}", version
        cluster.sql(
            f"CREATE TABLE {self.name} (id BIGINT, g INTEGER) PARTITIONED BY (g) WITH ('write.wap.enabled' = 'true', 'format-version' = '{version}'{properties});"
            f"INSERT INTO {self.name} SELECT i, CAST(i % 2 AS INTEGER) FROM range(10) r(i)"
        )
        self.rows = [(i, i % 2) for i in range(10)]

    def load(self):
        return self.cluster.pyiceberg().load_table(tuple(self.short.split(".")))

    def staged(self, wap_id):
        return next(s for s in self.load().snapshots() if s.summary.additional_properties.get("wap.id") == wap_id)

    def check(self):
        """Everybody reads the rows; those of version 3 have an id each."""
        want = sorted(self.rows)
        assert [(r["id"], r["g"]) for r in self.cluster.sql(f"SELECT id, g FROM {self.name} ORDER BY id")] == want
        columns = "id, g, _row_id" if self.version == 3 else "id, g"
        got = self.spark.sql(f"SELECT {columns} FROM {self.name}").collect()
        assert sorted((r[0], r[1]) for r in got) == want
        if self.version == 3:
            assert len({r[2] for r in got} - {None}) == len(want)
        t = self.load()
        assert sorted((r["id"], r["g"]) for r in t.scan().to_arrow().to_pylist()) == want
        assert int(t.current_snapshot().summary.additional_properties["total-records"]) == len(want)
        return t.current_snapshot()


@pytest.mark.parametrize("version", [2, 3])
def test_spark_publishes_ours(spark, cluster, version):
    t = Table(cluster, spark, f"ours_{version}", version)
    cluster.sql(f"INSERT INTO {t.name} VALUES (100, 1), (101, 5)", settings={"signet.wap_id": "a"})
    cluster.sql(f"INSERT OVERWRITE PARTITIONS INTO {t.name} SELECT 200 AS id, CAST(0 AS INTEGER) AS g", settings={"signet.wap_id": "o"})
    cluster.sql(f"INSERT INTO {t.name} VALUES (50, 7)")
    t.rows.append((50, 7))
    t.check()
    spark.sql(f"CALL {CATALOG}.system.cherrypick_snapshot('{t.short}', {t.staged('a').snapshot_id})")
    t.rows += [(100, 1), (101, 5)]
    spark.sql(f"CALL {CATALOG}.system.publish_changes('{t.short}', 'o')")
    t.rows = [r for r in t.rows if r[1] != 0] + [(200, 0)]
    head = t.check()
    assert head.summary.additional_properties["published-wap-id"] == "o"
    for wap_id in ("a", "o"):  # Spark's publication is known to us
        with pytest.raises(RuntimeError, match="on the main branch already"):
            cluster.sql(f"CALL {CATALOG}.system.publish_changes('{t.short}', '{wap_id}')")
    cluster.sql(f"DELETE FROM {t.name} WHERE id = 100")
    t.rows.remove((100, 1))
    t.check()


@pytest.mark.parametrize("version", [2, 3])
def test_we_publish_sparks(spark, cluster, version):
    """The manifests of Spark's staged snapshots hold files of main's beside its own: it merges them at once."""
    t = Table(cluster, spark, f"spark_{version}", version, ", 'commit.manifest.min-count-to-merge' = '2'")
    publish = f"CALL {CATALOG}.system.publish_changes('{t.short}', '%s')"
    try:
        spark.conf.set("spark.wap.id", "head")
        spark.sql(f"INSERT INTO {t.name} VALUES (90, 1)")
        cluster.sql(publish % "head")  # main moves to it
        t.rows.append((90, 1))
        assert t.check().snapshot_id == t.staged("head").snapshot_id
        spark.conf.set("spark.wap.id", "a")
        spark.sql(f"INSERT INTO {t.name} VALUES (100, 1), (101, 5)")
        spark.conf.set("spark.wap.id", "o")
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        spark.sql(f"INSERT OVERWRITE {t.name} VALUES (200, 0)")
        spark.conf.set("spark.wap.id", "d")
        spark.sql(f"DELETE FROM {t.name} WHERE id = 1")
    finally:
        spark.conf.unset("spark.wap.id")
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    manifests = t.staged("a").manifests(t.load().io)
    assert any(m.added_files_count and m.existing_files_count for m in manifests), "this is what the test is about"
    cluster.sql(f"INSERT INTO {t.name} VALUES (50, 7)")
    t.rows.append((50, 7))
    t.check()
    cluster.sql(publish % "a")
    t.rows += [(100, 1), (101, 5)]
    head = t.check()
    summary = head.summary.additional_properties
    assert (summary["published-wap-id"], summary["source-snapshot-id"], summary["added-records"]) == ("a", str(t.staged("a").snapshot_id), "2")
    assert head.summary.operation.value == "append"
    cluster.sql(publish % "o")
    t.rows = [r for r in t.rows if r[1] != 0] + [(200, 0)]
    t.check()
    with pytest.raises(RuntimeError, match="run its statement again"):
        cluster.sql(publish % "d")
    for wap_id in ("head", "a", "o"):  # our publication is known to Spark
        with pytest.raises(Exception, match="(?i)wap|ancestor"):
            spark.sql(f"CALL {CATALOG}.system.publish_changes('{t.short}', '{wap_id}')").collect()
    # Files that a published snapshot shares with its source stay when Spark expires that one.
    spark.sql(f"CALL {CATALOG}.system.expire_snapshots(table => '{t.short}', snapshot_ids => array({t.staged('a').snapshot_id}))").collect()
    assert not any(s.summary.additional_properties.get("wap.id") == "a" for s in t.load().snapshots())
    t.check()
    spark.sql(f"DELETE FROM {t.name} WHERE id = 101")
    t.rows.remove((101, 5))
    t.check()
