"""The cluster and the filled matrix, once per run."""
import os
import pathlib

import pytest

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
    if os.environ.get("INTEROP_WRITER") == "pyiceberg":
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
