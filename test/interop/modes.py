"""Histories of tables: every write mode after another, each step with what it means for the rows. The rows after each step are the truth.

A history runs once for each layout (partitioning, format version, how changed rows are stored). Nothing of Signet touches the truth.
"""
import dataclasses
import datetime as dt
import decimal
import itertools
import typing

D = decimal.Decimal
DAY = dt.datetime(2024, 2, 27, 22)

COLUMNS = "id BIGINT NOT NULL, n INTEGER, cat VARCHAR, price DECIMAL(9, 2), moment TIMESTAMP, tags VARCHAR[], s STRUCT(a INTEGER, b VARCHAR)"
CATEGORIES = ("a", "b", "null", "Größe €", None)


def row(i: int) -> dict:
    return {
        "id": i, "n": None if i % 11 == 0 else i * 3, "cat": CATEGORIES[i % 5], "price": D(i * 7 - 300) / 100, "moment": DAY + dt.timedelta(hours=i),
        "tags": None if i % 6 == 0 else [f"t{i % 4}", None][: i % 3], "s": None if i % 7 == 0 else {"a": i % 5, "b": f"b{i % 3}"},
    }


def literal(v) -> str:
    if v is None:
        return "NULL"
    if isinstance(v, str):
        return "'" + v.replace("'", "''") + "'"
    if isinstance(v, dt.datetime):
        return f"TIMESTAMP '{v.isoformat(' ')}'"
    if isinstance(v, list):
        return "[" + ", ".join(map(literal, v)) + "]::VARCHAR[]"
    if isinstance(v, dict):
        return "{" + ", ".join(f"'{k}': {literal(x)}" for k, x in v.items()) + "}"
    return str(v)


def values(rows: list[dict]) -> str:
    return "VALUES " + ", ".join("(" + ", ".join(literal(v) for v in r.values()) + ")" for r in rows)


@dataclasses.dataclass(frozen=True)
class Layout:
    name: str
    version: int
    mode: str  # copy-on-write or merge-on-read
    partition: str = ""

    def ddl(self, table: str) -> str:
        part = f" PARTITIONED BY ({self.partition})" if self.partition else ""
        props = ", ".join(f"'write.{op}.mode' = '{self.mode}'" for op in ("delete", "update", "merge"))
        return f"CREATE TABLE {table} ({COLUMNS}){part} WITH ('format-version' = '{self.version}', {props})"


PARTITIONS = {"plain": "", "by_cat": "cat", "by_day": "day(moment)", "by_bucket": "bucket(3, id), truncate(2, cat)"}
LAYOUTS = [
    Layout(f"{p}_v{v}_{'mor' if m == 'merge-on-read' else 'cow'}", v, m, spec)
    for (p, spec), v, m in itertools.product(PARTITIONS.items(), (2, 3), ("copy-on-write", "merge-on-read"))
]

Rows = list[dict]


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    sql: typing.Callable[[str], str]  # of the table's name
    rows: typing.Callable[[Rows], Rows]  # after it, of those before it
    only: typing.Callable[[Layout], bool] = lambda _: True


def update(cond, change):
    return lambda rows: [{**r, **change(r)} if cond(r) else r for r in rows]


def merge(rows: Rows) -> Rows:
    out = []
    for r in rows:
        if 20 <= r["id"] < 60:
            if r["id"] % 2:
                continue
            r = {**r, "cat": "merged", "n": r["id"] + 1000}
        out.append(r)
    have = {r["id"] for r in rows}
    return out + [{**row(i), "cat": "new"} for i in range(20, 60) if i not in have] + [{**row(i), "cat": "new"} for i in range(300, 310)]


def merge_sql(t: str) -> str:
    source = values([row(i) for i in [*range(20, 60), *range(300, 310)]])
    return f"""MERGE INTO {t} AS t USING ({source}) AS s(id, n, cat, price, moment, tags, s) ON t.id = s.id
        WHEN MATCHED AND t.id % 2 = 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET cat = 'merged', n = CAST(t.id + 1000 AS INTEGER)
        WHEN NOT MATCHED THEN INSERT (id, n, cat, price, moment, tags, s) VALUES (s.id, s.n, 'new', s.price, s.moment, s.tags, s.s)"""


STEPS = [
    Step("insert", lambda t: f"INSERT INTO {t} {values([row(i) for i in range(100)])}", lambda r: r + [row(i) for i in range(100)]),
    Step("insert again", lambda t: f"INSERT INTO {t} {values([row(i) for i in range(100, 150)])}", lambda r: r + [row(i) for i in range(100, 150)]),
    Step("delete", lambda t: f"DELETE FROM {t} WHERE id % 10 = 3", lambda r: [x for x in r if x["id"] % 10 != 3]),
    Step("delete where NULL", lambda t: f"DELETE FROM {t} WHERE n > 400 OR n IS NULL", lambda r: [x for x in r if x["n"] is not None and x["n"] <= 400]),
    Step(
        "update", lambda t: f"UPDATE {t} SET price = price + 1, cat = 'upd' WHERE id BETWEEN 70 AND 80",
        update(lambda r: 70 <= r["id"] <= 80, lambda r: {"price": r["price"] + 1, "cat": "upd"}),
    ),
    Step("merge", merge_sql, merge),
    Step(
        "delete again", lambda t: f"DELETE FROM {t} WHERE id IN (SELECT 5 * i FROM range(40) r(i)) AND cat <> 'new'",
        lambda r: [x for x in r if not (x["id"] % 5 == 0 and x["id"] < 200 and x["cat"] is not None and x["cat"] != "new")],
    ),
    Step(
        "overwrite partitions", lambda t: f"INSERT OVERWRITE PARTITIONS INTO {t} {values([{**row(i), 'cat': 'b'} for i in range(400, 405)])}",
        lambda r: [x for x in r if x["cat"] != "b"] + [{**row(i), "cat": "b"} for i in range(400, 405)], lambda lay: lay.partition == "cat",
    ),
    Step(
        "replace where", lambda t: f"INSERT INTO {t} REPLACE WHERE cat = 'a' {values([{**row(i), 'cat': 'a'} for i in range(410, 413)])}",
        lambda r: [x for x in r if x["cat"] != "a"] + [{**row(i), "cat": "a"} for i in range(410, 413)], lambda lay: lay.partition == "cat",
    ),
    Step("add column", lambda t: f"ALTER TABLE {t} ADD COLUMN extra INTEGER", lambda r: [{**x, "extra": None} for x in r]),
    Step("rename column", lambda t: f"ALTER TABLE {t} RENAME COLUMN price TO cost", lambda r: [{("cost" if k == "price" else k): v for k, v in x.items()} for x in r]),
    Step("widen", lambda t: f"ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT", lambda r: r),
    Step("update what was added", lambda t: f"UPDATE {t} SET extra = 7, n = 5000000000 WHERE id >= 100 AND id < 120", update(lambda r: 100 <= r["id"] < 120, lambda r: {"extra": 7, "n": 5_000_000_000})),
    Step("compact", lambda t: f"CALL system.rewrite_data_files(table => '{t}', options => map('rewrite-all', 'true'))", lambda r: r),
    Step("delete after compaction", lambda t: f"DELETE FROM {t} WHERE id % 4 = 2", lambda r: [x for x in r if x["id"] % 4 != 2]),
    Step("rewrite manifests", lambda t: f"CALL system.rewrite_manifests('{t}')", lambda r: r),
]

LAST = [
    Step("overwrite", lambda t: f"INSERT OVERWRITE {t} {values([{**row(i), 'extra': i} for i in range(500, 520)])}", lambda _: renamed([{**row(i), "extra": i} for i in range(500, 520)])),
    Step("truncate", lambda t: f"TRUNCATE TABLE {t}", lambda _: []),
    Step("insert at the end", lambda t: f"INSERT INTO {t} {values([{**row(i), 'extra': i} for i in range(600, 605)])}", lambda _: renamed([{**row(i), "extra": i} for i in range(600, 605)])),
]


def renamed(rows: Rows) -> Rows:
    return [{("cost" if k == "price" else k): v for k, v in r.items()} for r in rows]


def ordered(rows: Rows) -> Rows:
    return sorted(rows, key=lambda r: r["id"])
