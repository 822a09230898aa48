"""The Delta tables of the suite, the rows that are in them, and what delta-rs and Spark make of both. As in `matrix`, the truth are plain Python values."""
import datetime as dt
import decimal
import glob
import json
import pathlib
import urllib.parse

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import matrix
from cluster import DELTA as CATALOG
from matrix import Table, Type

ROWS = 120

# What Delta has: no TIME, UUID and FIXED, and integers of one and two bytes.
TYPES = [t for t in matrix.TYPES if t.name not in ("c_time", "c_uuid", "c_fixed")] + [
    Type("c_byte", "TINYINT", pa.int8(), (-128, -1, 0, 127, None)),
    Type("c_short", "SMALLINT", pa.int16(), (-(2**15), -1, 0, 2**15 - 1, None)),
    # Texts whose bounds are cut: 32 characters, of which the last may be the greatest that there is.
    Type("c_long_text", "VARCHAR", pa.string(), ("x" * 32, "x" * 33, "x" * 31 + "\U0010ffff" * 3, "\U0010ffff" * 40, "日" * 33, "\x7f" * 33, None)),
]
NESTED = matrix.NESTED

# Types that Delta partitions by, and values that would be absurd in a path.
PARTITION_TYPES = ["c_boolean", "c_byte", "c_short", "c_int", "c_long_edge", "c_dec9", "c_dec38", "c_date", "c_ts", "c_tstz"]
P_STRING = Type("p", "VARCHAR", pa.string(), ("a b", "x:y", "München", "100%25", "q/r", "a=b", "__x", "🙂", "'\"", "..", "%", "#?&+", "null", "", None))


def by_name(*names: str) -> tuple[Type, ...]:
    return tuple(next(t for t in TYPES + NESTED if t.name == n) for n in names)


def tables() -> list[Table]:
    out = [
        Table("plain", tuple(TYPES)), Table("nested", tuple(NESTED)), Table("by_text", (P_STRING, *by_name("c_string", "c_int")), ("p",)),
        Table("by_two", by_name("c_date", "c_dec9", "c_string", "c_struct"), ("c_date", "c_dec9")), Table("options", by_name("c_string", "c_long"), (), " WITH ('delta.checkpointInterval' = '3')"),
    ]
    return out + [Table("by_" + n[2:], by_name(n, "c_string"), (n,)) for n in PARTITION_TYPES]


TABLES = tables()


# delta-rs 1.6 writes a partition value of '' as such, and -0.01 as 0.-1, which nobody can read, and it cannot itself.
DELTA_RS_CANNOT_WRITE = {"by_text", "by_two", "by_dec9", "by_dec38"}


def rows(table: Table, first: int, count: int) -> list[dict]:
    return matrix.rows(table, first, count)


def stored(table: Table, data: list[dict]) -> list[dict]:
    """The rows as any reader of Delta has them: an empty text is NULL where the table is partitioned by it (PROTOCOL.md, Partition Value Serialization)."""
    return [{k: None if v == "" and k in table.partition else v for k, v in r.items()} for r in data]


# ---- the log --------------------------------------------------------------------------------------------------------------------------


def commits(path: pathlib.Path) -> dict[int, list[dict]]:
    """The actions of every commit that is still there as JSON, by version."""
    return {int(pathlib.Path(f).stem): [json.loads(line) for line in open(f)] for f in sorted(glob.glob(f"{path}/_delta_log/*.json")) if pathlib.Path(f).stem.isdigit()}


def check_log(path: pathlib.Path):
    """What must hold of every log, whoever wrote it: no version is missing, and what is added is there and is not below a name that needs decoding twice."""
    log = commits(path)
    assert list(log) == list(range(min(log), max(log) + 1)), "versions are contiguous"
    for version, actions in log.items():
        keys = [(k, a[k]["path"], (a[k].get("deletionVector") or {}).get("pathOrInlineDv")) for a in actions for k in ("add", "remove") if k in a]
        assert len(keys) == len(set(keys)), version
        for a in actions:
            if "add" in a and not any("remove" in other and other["remove"]["path"] == a["add"]["path"] for v in log.values() for other in v):
                file = path / urllib.parse.unquote(a["add"]["path"])
                assert file.stat().st_size == a["add"]["size"], version


# ---- delta-rs -------------------------------------------------------------------------------------------------------------------------


def delta_rs(path: pathlib.Path, sql: str = "SELECT * FROM t") -> list[dict]:
    """A query over the table t, by DataFusion, which leaves files out by the log's statistics."""
    return delta_rs_table(path, sql).to_pylist()


def delta_rs_table(path: pathlib.Path, sql: str = "SELECT * FROM t") -> pa.Table:
    return pa.table(QueryBuilder().register("t", DeltaTable(str(path))).execute(sql))


def append(path: pathlib.Path, data: pa.Table, partition=(), **options):
    """By delta-rs. All columns may be NULL: with timestamps without a zone it forgets the feature that a NOT NULL needs, and Spark refuses the table."""
    data = data.cast(pa.schema([f.with_nullable(True) for f in data.schema]))
    write_deltalake(str(path), data, mode="append", partition_by=list(partition) or None, **options)


def micros(v: dt.datetime) -> int:
    return (v.replace(tzinfo=matrix.UTC) - dt.datetime(1970, 1, 1, tzinfo=matrix.UTC)) // dt.timedelta(microseconds=1)


def rs_literal(v, c: Type) -> str:
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, dt.datetime):
        zone = 'Some("UTC")' if v.tzinfo else "None"
        return f"arrow_cast(CAST({micros(v)} AS BIGINT), 'Timestamp(Microsecond, {zone})')"
    if isinstance(v, dt.date):
        return f"arrow_cast(CAST({(v - dt.date(1970, 1, 1)).days} AS INT), 'Date32')"
    if isinstance(v, decimal.Decimal):
        return f"arrow_cast('{v:f}', 'Decimal128({c.arrow.precision}, {c.arrow.scale})')"
    if isinstance(v, float):
        return f"arrow_cast('{v!r}', '{'Float32' if c.sql == 'REAL' else 'Float64'}')"
    if isinstance(v, bytes):
        return f"X'{v.hex()}'"
    if isinstance(v, str):
        return "'" + v.replace("'", "''") + "'"
    return f"CAST('{v}' AS {c.sql})"


def where(f: matrix.Filter, literal: str) -> str:
    if f.op == "null":
        return f"{f.column} IS NULL"
    return f"{f.column} {dict(eq='=', ge='>=', lt='<')[f.op]} {literal}"


def filters(table: Table) -> list[matrix.Filter]:
    out = matrix.filters(table)
    return [matrix.Filter("id", f.op, ROWS - 1) if f.column == "id" and f.value == matrix.ROWS - 1 else f for f in out if f.value != matrix.ROWS - 3] + [matrix.Filter("id", "ge", ROWS - 3)]
