"""The cluster and the filled matrix, once per run."""
import glob
import os
import pathlib

import pytest

import delta
import matrix
from cluster import CATALOG, Cluster

SCHEMA = "matrix"


class Filled:
    """The matrix as it stands: rows by table name. Tests that append add to it."""

    def __init__(self, cluster, directory: pathlib.Path):
        self.cluster, self.dir = cluster, directory
        self.rows = {t.name: [] for t in matrix.TABLES}
        self.next_id = {t.name: 0 for t in matrix.TABLES}
        self.unwritable = set()  # control mode: tables that PyIceberg cannot write

    def take(self, table: matrix.Table, count: int, change=lambda data: data) -> list[dict]:
        """The next rows of a table; they count as written."""
        data = change(matrix.rows(table, self.next_id[table.name], count))
        self.next_id[table.name] += count
        self.rows[table.name] += data
        return data

    def insert(self, table: matrix.Table, count: int) -> str:
        """The INSERT statement for the next rows."""
        path = self.dir / f"{table.name}-{self.next_id[table.name]}.parquet"
        matrix.write_input(table, self.take(table, count), path)
        return f"INSERT INTO {CATALOG}.{SCHEMA}.{table.name} SELECT * FROM '{path}';"


def fill_with_signet(filled: Filled):
    filled.cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")
    script = []
    for t in matrix.TABLES:
        script.append(t.ddl(CATALOG, SCHEMA) + ";")
        # Three commits, so that there are files to leave out.
        script += [filled.insert(t, matrix.ROWS // 3) for _ in range(3)]
    filled.cluster.sql("\n".join(script))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    if os.environ.get("INTEROP_WRITER"):
        import control

        yield control.Catalog(tmp_path_factory.mktemp("control"))
        return
    c = Cluster(tmp_path_factory.mktemp("cluster"))
    yield c
    c.stop()


@pytest.fixture(scope="session")
def filled(cluster, tmp_path_factory):
    f = Filled(cluster, tmp_path_factory.mktemp("input"))
    if os.environ.get("INTEROP_WRITER") == "pyiceberg":
        import control

        control.fill(f, SCHEMA)
    else:
        fill_with_signet(f)
    return f


class FilledDelta(Filled):
    """The Delta tables, as `Filled`."""

    def __init__(self, cluster, directory: pathlib.Path):
        super().__init__(cluster, directory)
        self.rows = {t.name: [] for t in delta.TABLES}
        self.next_id = {t.name: 0 for t in delta.TABLES}

    def path(self, name: str) -> pathlib.Path:
        return self.cluster.delta / SCHEMA / name

    def insert(self, table: matrix.Table, count: int) -> str:
        path = self.dir / f"{table.name}-{self.next_id[table.name]}.parquet"
        matrix.write_input(table, self.take(table, count), path)
        return f"INSERT INTO {delta.CATALOG}.{SCHEMA}.{table.name} SELECT * FROM '{path}';"

    def want(self, table: matrix.Table) -> list[dict]:
        return matrix.canonical(delta.stored(table, self.rows[table.name]))


@pytest.fixture(scope="session")
def deltas(cluster, tmp_path_factory):
    f = FilledDelta(cluster, tmp_path_factory.mktemp("delta-input"))
    if os.environ.get("INTEROP_WRITER") == "delta-rs":
        for t in (t for t in delta.TABLES if t.name not in delta.DELTA_RS_CANNOT_WRITE):
            for _ in range(3):
                delta.append(f.path(t.name), matrix.arrow_table(t, f.take(t, delta.ROWS // 3)), t.partition)
        return f
    script = []
    for t in delta.TABLES:
        script.append(t.ddl(delta.CATALOG, SCHEMA) + ";")
        script += [f.insert(t, delta.ROWS // 3) for _ in range(3)]
    cluster.sql("\n".join(script))
    return f


@pytest.fixture(scope="session")
def spark(cluster, tmp_path_factory):
    from pyspark.sql import SparkSession

    jars = ",".join(sorted(glob.glob(os.environ["INTEROP_JARS"] + "/*.jar")))
    tmp = tmp_path_factory.mktemp("spark")
    c = f"spark.sql.catalog.{CATALOG}"
    b = SparkSession.builder.master("local[2]").appName("interop")
    for k, v in {
        "spark.jars": jars, "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "2", "spark.local.dir": str(tmp), "spark.sql.warehouse.dir": str(tmp / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Dderby.system.home={tmp}",
        # Tables are small: compiling a query takes longer than running it.
        "spark.databricks.delta.snapshotPartitions": "2", "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog", c: "org.apache.iceberg.spark.SparkCatalog", c + ".type": "jdbc",
        c + ".uri": f"jdbc:sqlite:file:{cluster.db}", c + ".jdbc.schema-version": "V1", c + ".warehouse": str(cluster.warehouse), c + ".cache-enabled": "false",
    }.items():
        b = b.config(k, v)
    s = b.getOrCreate()
    s.sparkContext.setLogLevel("OFF")
    gateway = s.sparkContext._gateway
    yield s
    s.stop()
    # The JVM ends by itself only after this process: whoever looks right then would see it.
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(60)
