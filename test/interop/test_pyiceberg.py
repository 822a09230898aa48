"""PyIceberg reads the matrix out of the same SQLite catalog, and appends to it."""
import os

import pyarrow as pa
import pytest
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNull, LessThan
from pyiceberg.table import StaticTable

import matrix
from cluster import CATALOG
from conftest import SCHEMA

OURS = os.environ.get("INTEROP_WRITER") != "pyiceberg"


def load(filled, table):
    if table.name in filled.unwritable:
        pytest.skip("PyIceberg cannot write this table")
    return filled.cluster.pyiceberg().load_table((SCHEMA, table.name))


def read(t) -> list[dict]:
    return matrix.canonical(t.scan().to_arrow().to_pylist())


def truth(filled, table) -> list[dict]:
    return matrix.canonical(matrix.as_pyiceberg_reads(filled.rows[table.name]))


def expression(f: matrix.Filter):
    if f.op == "null":
        return IsNull(f.column)
    return {"eq": EqualTo, "ge": GreaterThanOrEqual, "lt": LessThan}[f.op](f.column, f.value)


@pytest.mark.parametrize("table", matrix.TABLES, ids=lambda t: t.name)
def test_rows_are_equal(filled, table):
    t = load(filled, table)
    want = truth(filled, table)
    assert read(t) == want
    assert t.scan().count() == len(want)
    assert read(StaticTable.from_metadata(t.metadata_location)) == want, "from the metadata file alone"


@pytest.mark.parametrize("table", matrix.TABLES, ids=lambda t: t.name)
def test_filters_find_their_rows_and_prune(filled, table):
    t = load(filled, table)
    data = filled.rows[table.name]
    everything = len(list(t.scan().plan_files()))
    wrong, pruned = [], 0
    for f in matrix.filters(table):
        if not matrix.pyiceberg_can_filter(matrix.column(table, f.column), f):
            continue
        try:
            scan = t.scan(row_filter=expression(f), selected_fields=("id",))
            got = sorted(scan.to_arrow()["id"].to_pylist())
            pruned += len(list(scan.plan_files())) < everything
        except Exception as e:  # a filter that fails counts as wrong
            got = f"{type(e).__name__}: {e}"[:300]
        want = matrix.expected(data, f)
        if got != want:
            wrong.append((f, len(want), got if isinstance(got, str) else len(got)))
    assert not wrong
    assert everything == 1 or pruned > 0, f"no filter left out any of {everything} files"
    # Ids rise from commit to commit, so the first one lies in one commit's files only.
    first = list(t.scan(row_filter=EqualTo("id", 0)).plan_files())
    assert len(first) < everything, "column bounds do not prune"


@pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")
def test_both_append(filled):
    for table in matrix.TABLES:
        if table.name in matrix.PYICEBERG_CANNOT_APPEND:
            continue
        t = load(filled, table)
        theirs = matrix.arrow_table(table, filled.take(table, 30, matrix.for_pyiceberg))
        t.append(theirs.cast(pa.schema([f.with_nullable(f.name != "id") for f in theirs.schema])))
        count = filled.cluster.sql(f"SELECT count(*) AS n, sum(id) AS s FROM {CATALOG}.{SCHEMA}.{table.name}")[0]
        assert count == {"n": len(filled.rows[table.name]), "s": sum(r["id"] for r in filled.rows[table.name])}, table.name
    filled.cluster.sql("\n".join(filled.insert(table, 30) for table in matrix.TABLES))
    wrong = [t.name for t in matrix.TABLES if read(load(filled, t)) != truth(filled, t)]
    assert not wrong


@pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")
def test_metadata_says_what_we_promise(filled):
    """Names and ids in the metadata that other tools rely on."""
    for table in matrix.TABLES:
        t = load(filled, table)
        assert t.metadata.format_version == 2
        ours = [s for s in t.snapshots() if s.summary.additional_properties.get("engine-name") == "signet"]
        assert ours, table.name
        assert all(s.summary.additional_properties.get("signet.markers") for s in ours)
        assert any(k.startswith("signet.landed.") for k in t.properties)
        total = int(t.current_snapshot().summary.additional_properties["total-records"])
        assert total == len(filled.rows[table.name]), table.name
