"""Signet reads the tables that delta-io/delta and delta-io/delta-kernel-rs test their readers with: the rows are those that came with them, or else those that
delta-rs reads; what docs/delta-golden-tables.md says is refused is refused with the feature's name."""
import os
import pathlib
import re
import shutil
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

import delta
import matrix

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANY = 100_000  # rows, beyond which they are compared as columns
ARCHIVE = ROOT / "sinks/delta/log/testdata/golden.tar.zst"

pytestmark = pytest.mark.skipif(bool(os.environ.get("INTEROP_WRITER")), reason="the writer is not Signet")


# The rows that came with it have a partition value without a zone in that of California, where whoever wrote it was; to us, as to delta-rs, it is UTC.
ZONE_OF_THE_WRITER = "delta/data-reader-partition-values"


def outcomes() -> dict[str, str]:
    lines = [line.split("|") for line in (ROOT / "docs/delta-golden-tables.md").read_text().splitlines() if line.startswith(("| delta/", "| kernel/"))]
    return {cells[1].strip(): cells[2].strip() for cells in lines}


@pytest.fixture(scope="session")
def golden(cluster):
    """The tables below a schema of the Delta catalog, by the names that the document has."""
    at = cluster.delta.parent / "golden"
    with open(ARCHIVE, "rb") as f:
        stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(f)
        tarfile.open(fileobj=stream, mode="r|").extractall(at, filter="data")
    names = {}
    for name in outcomes():
        names[name] = re.sub("[^a-z0-9]", "_", name.lower())
        shutil.copytree(at / name, cluster.delta / "golden" / names[name], dirs_exist_ok=True)
    expected = {str(d.relative_to(at / "expected")).lower(): d for d in {p.parent for p in (at / "expected").rglob("*.parquet")}}
    return cluster, names, expected


def norm(v):
    """A value whatever its reader has made of it: instants and timestamps without a zone are the same number of microseconds."""
    v = matrix.norm(v)
    if isinstance(v, dict):
        return sorted((k, norm(x)) for k, x in v.items())
    if isinstance(v, list):
        v = [norm(x) for x in v]
        return sorted(v, key=repr) if v and all(isinstance(x, list) and len(x) == 2 for x in v) else v
    if hasattr(v, "isoformat"):
        v = v.isoformat()
    if isinstance(v, str):
        return v.removesuffix("+00:00")
    return v


def canonical(rows: list[dict]) -> list:
    return sorted((norm(r) for r in rows), key=repr)


def equal(got: pa.Table, want: pa.Table) -> str:
    """Empty, or the first difference."""
    if got.num_rows > MANY:
        by = [(n, "ascending") for n in want.schema.names]
        return "" if got.select(want.schema.names).cast(want.schema).sort_by(by).equals(want.sort_by(by)) else "rows differ"
    a, b = canonical(got.to_pylist()), canonical(want.to_pylist())
    if a == b:
        return ""
    return f"{len(a)} rows, {len(b)} expected, " + str(next(([(g, w) for g, w in zip(x, y) if g != w] for x, y in zip(a, b) if x != y), None))[:600]


def signet(cluster, name: str) -> pa.Table:
    import adbc_driver_flightsql.dbapi as flight

    with flight.connect(f"grpc://{cluster.flight}") as c, c.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {delta.CATALOG}.golden.{name}")
        return cursor.fetch_arrow_table()


def data_files(path: pathlib.Path) -> list[pathlib.Path]:
    return [f for f in path.rglob("*.parquet") if "_delta_log" not in f.parts]


def test_each_is_read_right_or_refused_by_name(golden):
    cluster, names, expected = golden
    wrong, compared, unknown = [], 0, []
    for name, outcome in outcomes().items():
        try:
            got = signet(cluster, names[name])
        except Exception as e:
            text = " ".join(str(e).split())
            feature = re.match(r"refused: (\w+)", outcome)
            if outcome == "read" and "is not there" in text and not data_files(cluster.delta / "golden" / names[name]):
                continue  # it is a log alone
            if outcome == "read" or feature and feature[1] not in text:
                wrong.append((name, outcome, text[:300]))
            continue
        if outcome != "read":
            wrong.append((name, outcome, f"{got.num_rows} rows"))
            continue
        want = expected.get(name.removeprefix("delta/").lower()) if name.startswith("delta/") and name != ZONE_OF_THE_WRITER else None
        try:
            rows = pq.read_table(want, partitioning=None, coerce_int96_timestamp_unit="us") if want else delta.delta_rs_table(cluster.delta / "golden" / names[name])
        except Exception as e:  # delta-rs cannot read it
            unknown.append((name, str(e)[:80]))
            continue
        compared += 1
        if difference := equal(got, rows):
            wrong.append((name, difference))
    print(f"{compared} tables compared, {len(unknown)} that delta-rs cannot read: {unknown}")
    assert not wrong
    assert compared > 100
