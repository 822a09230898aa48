"""Every write mode, on every layout: PyIceberg and Spark read each state of a table as it has to be, and what they change themselves is read right by us."""
import json

import pytest

import modes
from cluster import CATALOG
from test_spark import OURS, plain

SCHEMA = "modes"
pytestmark = pytest.mark.skipif(not OURS, reason="the writer is PyIceberg")


def table(layout) -> str:
    return f"{CATALOG}.{SCHEMA}.{layout.name}"


class History:
    """A table's states by snapshot: the step that made each, and the rows."""

    def __init__(self, cluster, layout):
        self.cluster, self.layout, self.states, self.rows = cluster, layout, [], []
        cluster.sql(layout.ddl(table(layout)))

    def run(self, steps):
        for s in steps:
            if not s.only(self.layout):
                continue
            try:
                self.cluster.sql(s.sql(table(self.layout)))
            except RuntimeError as e:
                raise AssertionError(f"{self.layout.name}: {s.name}: {str(e)[:600]}") from e
            self.rows = s.rows(self.rows)
            self.states.append((s.name, self.snapshot(), modes.ordered(self.rows)))

    def snapshot(self):
        t = self.cluster.pyiceberg().load_table((SCHEMA, self.layout.name))
        return t.current_snapshot().snapshot_id if t.current_snapshot() else None


@pytest.fixture(scope="module")
def histories(cluster):
    cluster.sql(f"CREATE SCHEMA {CATALOG}.{SCHEMA}")
    out = {}
    for layout in modes.LAYOUTS:
        out[layout.name] = h = History(cluster, layout)
        h.run(modes.STEPS)
    return out


def layouts(f):
    return pytest.mark.parametrize("layout", modes.LAYOUTS, ids=lambda lay: lay.name)(f)


def differences(name, got, want):
    """The first rows that differ: whole tables are not for reading."""
    if got == want:
        return None
    extra = [r for r in got if r not in want][:2]
    missing = [r for r in want if r not in got][:2]
    return f"{name}: {len(got)} rows, want {len(want)}; not wanted {extra}; missing {missing}"


def last_of_snapshot(states):
    """A change of the schema alone makes no snapshot: of one snapshot's states the last has the columns that a reader sees now."""
    return {snap: (name, rows) for name, snap, rows in states}


@layouts
def test_we_read_it(histories, layout):
    h = histories[layout.name]
    got = h.cluster.sql(f"SELECT id, n, cat, CAST(cost AS VARCHAR) AS cost, extra FROM {table(layout)} ORDER BY id")
    want = [{"id": r["id"], "n": r["n"], "cat": r["cat"], "cost": f"{r['cost']:.2f}", "extra": r["extra"]} for r in modes.ordered(h.rows)]
    assert not differences("now", [{**r, "n": r["n"] and int(r["n"])} for r in got], want)


@layouts
def test_pyiceberg_reads_every_state(histories, layout):
    t = histories[layout.name].cluster.pyiceberg().load_table((SCHEMA, layout.name))
    wrong = []
    for snap, (name, rows) in last_of_snapshot(histories[layout.name].states).items():
        columns = [c for c in rows[0] if c in {f.name for f in t.schemas()[t.snapshot_by_id(snap).schema_id].fields}]
        got = modes.ordered(t.scan(snapshot_id=snap).to_arrow().to_pylist())
        wrong.append(differences(name, [{c: r[c] for c in columns} for r in got], [{c: r[c] for c in columns} for r in rows]))
    assert not list(filter(None, wrong))
    summary = t.current_snapshot().summary.additional_properties
    assert int(summary["total-records"]) - int(summary.get("total-position-deletes", 0)) == len(histories[layout.name].rows)


@layouts
def test_spark_reads_every_state(spark, histories, layout):
    wrong = []
    for snap, (name, rows) in last_of_snapshot(histories[layout.name].states).items():
        df = spark.sql(f"SELECT * FROM {table(layout)} VERSION AS OF {snap}")
        got = modes.ordered([{k: plain(v) for k, v in r.asDict().items()} for r in df.collect()])
        columns = [c for c in rows[0] if c in df.columns]
        wrong.append(differences(name, [{c: r[c] for c in columns} for r in got], [{c: r[c] for c in columns} for r in rows]))
    assert not list(filter(None, wrong))
    counted = spark.sql(f"SELECT count(*) FROM {table(layout)}").collect()[0][0]
    assert counted == len(histories[layout.name].rows)


def lineage(spark, layout, snap):
    df = spark.sql(f"SELECT id, _row_id, _last_updated_sequence_number FROM {table(layout)} VERSION AS OF {snap}")
    return {r[0]: (r[1], r[2]) for r in df.collect()}


@pytest.mark.parametrize("layout", [lay for lay in modes.LAYOUTS if lay.version == 3], ids=lambda lay: lay.name)
def test_row_lineage(spark, histories, layout):
    """A row keeps its id while it is carried along or updated; its sequence number is that of its last change."""
    h = histories[layout.name]
    t = h.cluster.pyiceberg().load_table((SCHEMA, layout.name))
    before, known = {}, {}
    for snap, (name, rows) in last_of_snapshot(h.states).items():
        seq, now = t.snapshot_by_id(snap).sequence_number, lineage(spark, layout, snap)
        ids = [row_id for row_id, _ in now.values()]
        assert None not in ids and len(ids) == len(set(ids)), name
        rows = {r["id"]: {k: v for k, v in r.items() if k not in ("cost", "price")} | {"price": r.get("cost", r.get("price"))} for r in rows}
        assert now.keys() == rows.keys(), name
        for i, (row_id, last) in now.items():
            if i not in before:
                assert last == seq, (name, i)
                continue
            assert row_id == before[i][0], f"{name}: row {i} had _row_id {before[i][0]}, has {row_id}"
            changed = {k: v for k, v in rows[i].items() if k != "extra"} != {k: v for k, v in known[i].items() if k != "extra"} or rows[i].get("extra") != known[i].get("extra")
            assert last == (seq if changed else before[i][1]), f"{name}: row {i}"
        before, known = now, rows


@layouts
def test_spark_goes_on(spark, histories, layout):
    """Spark deletes, updates, merges and compacts after us; we read it, and write after it."""
    h, t = histories[layout.name], table(layout)
    spark.sql(f"DELETE FROM {t} WHERE id % 9 = 1")
    spark.sql(f"UPDATE {t} SET extra = -1 WHERE id % 9 = 2")
    spark.sql(f"MERGE INTO {t} t USING (SELECT CAST(7 AS BIGINT) id UNION ALL SELECT 304) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 4242")
    rows = [r for r in h.rows if r["id"] % 9 != 1]
    rows = [{**r, "extra": -1} if r["id"] % 9 == 2 else r for r in rows]
    h.rows = [{**r, "n": 4242} if r["id"] in (7, 304) else r for r in rows]
    read = f"SELECT id, n, cat, extra, tags, s FROM {t} ORDER BY id"
    got = h.cluster.sql(read)
    want = [{k: r[k] for k in ("id", "n", "cat", "extra", "tags", "s")} for r in modes.ordered(h.rows)]
    assert not differences("after Spark", [{**r, "n": r["n"] and int(r["n"])} for r in got], want)
    h.cluster.sql(f"DELETE FROM {t} WHERE id % 9 = 4; UPDATE {t} SET extra = -2 WHERE id % 9 = 5")
    rows = [r for r in h.rows if r["id"] % 9 != 4]
    h.rows = [{**r, "extra": -2} if r["id"] % 9 == 5 else r for r in rows]
    df = spark.sql(f"SELECT id, n, cat, extra FROM {t}")
    got = modes.ordered([r.asDict() for r in df.collect()])
    assert not differences("after us", got, [{k: r[k] for k in ("id", "n", "cat", "extra")} for r in modes.ordered(h.rows)])


@pytest.mark.parametrize("layout", [lay for lay in modes.LAYOUTS if lay.version == 2], ids=lambda lay: lay.name)
def test_pyiceberg_goes_on(histories, layout):
    """PyIceberg deletes and evolves after us; we read it, and write after it."""
    h = histories[layout.name]
    t = h.cluster.pyiceberg().load_table((SCHEMA, layout.name))
    t.delete("id >= 80 and id < 90")
    with t.update_schema() as u:
        u.rename_column("extra", "more")
    h.rows = [{("more" if k == "extra" else k): v for k, v in r.items()} for r in h.rows if not 80 <= r["id"] < 90]
    h.cluster.sql(f"UPDATE {table(layout)} SET more = 99 WHERE id = 405; DELETE FROM {table(layout)} WHERE id = 92")
    h.rows = [{**r, "more": 99} if r["id"] == 405 else r for r in h.rows if r["id"] != 92]
    t = h.cluster.pyiceberg().load_table((SCHEMA, layout.name))
    got = modes.ordered(t.scan().to_arrow().to_pylist())
    assert not differences("after us", got, modes.ordered(h.rows))


@layouts
def test_the_end(spark, histories, layout):
    """Whole overwrites last: nothing is left of what was there."""
    h = histories[layout.name]
    for s in modes.LAST:
        h.cluster.sql(s.sql(table(layout)))
        want = modes.ordered(s.rows([]))
        got = modes.ordered([{k: plain(v) for k, v in r.asDict().items()} for r in spark.sql(f"SELECT id, n, cat, moment FROM {table(layout)}").collect()])
        assert not differences(s.name, got, [{k: r[k] for k in ("id", "n", "cat", "moment")} for r in want])
        t = h.cluster.pyiceberg().load_table((SCHEMA, layout.name))
        assert t.scan().count() == len(want), s.name
    assert json.dumps(t.current_snapshot().summary.additional_properties)
