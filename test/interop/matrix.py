"""The tables of the matrix, their rows, and the filters that every reader must answer.

Rows are plain Python values: the truth. `write_input` stores them as Parquet for Signet's INSERT; nothing else of Signet touches the truth.
"""
import dataclasses
import datetime as dt
import decimal
import pathlib
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 300
UTC = dt.timezone.utc
D = decimal.Decimal


@dataclasses.dataclass(frozen=True)
class Type:
    name: str  # column name
    sql: str
    arrow: pa.DataType
    values: tuple  # distinct edge values; rows cycle through them, NULL among them
    transforms: tuple = ()  # as SQL, with {} for the column
    nan: bool = False  # holds NaN: no reader agrees on order, so only equality is asked
    filters: bool = True  # can be compared at all
    spark: bool = True  # Spark 4.0 has the type


def ts(text: str, tz=None) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=tz)


# PyIceberg 0.12 cannot write it: the upper bound that it makes of it is a surrogate (apache/iceberg#11161). It reads it.
SURROGATE_NEIGHBOUR = "\ud7ff\ud7ff" * 9

STAMPS = (
    "1969-12-31T23:59:59.999999", "1970-01-01T00:00:00", "1969-12-31T23:00:00", "2024-02-29T12:34:56.789012", "1900-01-01T00:00:00",
    "2038-01-19T03:14:08", "0001-01-01T00:00:00.000001", "9999-12-31T23:59:59.999999", "2024-03-31T01:30:00",
)
TIME_TRANSFORMS = ("{}", "bucket(7, {})", "year({})", "month({})", "day({})")
U = [uuid.UUID(int=n) for n in (0, 1, 2**127, 2**128 - 1, 0x123456789ABCDEF0123456789ABCDEF)]

TYPES = [
    Type("c_boolean", "BOOLEAN", pa.bool_(), (True, False, None), ("{}",)),
    # Extremes that a truncate would carry out of the type have columns of their own.
    Type("c_int_edge", "INTEGER", pa.int32(), (-(2**31), 0, 2**31 - 1, None), ("bucket(7, {})",)),
    Type("c_long_edge", "BIGINT", pa.int64(), (-(2**63), 0, 2**63 - 1, None), ("bucket(7, {})",)),
    Type("c_int", "INTEGER", pa.int32(), (-(2**31) + 8, -11, -1, 0, 1, 9, 10, 2**31 - 1, None), ("{}", "bucket(7, {})", "truncate(10, {})")),
    Type("c_long", "BIGINT", pa.int64(), (-(2**63) + 8, -1, 0, 1, 2**53 + 1, 2**63 - 1, None), ("{}", "bucket(7, {})", "truncate(100, {})")),
    Type("c_float", "REAL", pa.float32(), (-1.5, 0.25, 2.0**100, 3.4028234663852886e38, float("-inf"), float("inf"), None), ()),
    Type("c_float_nan", "REAL", pa.float32(), (-1.5, float("nan"), 2.5, None), (), nan=True),
    Type("c_double", "DOUBLE", pa.float64(), (-1e300, 0.1, 5e-324, 1.7976931348623157e308, float("-inf"), float("inf"), None), ()),
    Type("c_double_nan", "DOUBLE", pa.float64(), (float("nan"), 1.0, None), (), nan=True),
    Type("c_dec9", "DECIMAL(9, 2)", pa.decimal128(9, 2), (D("-9999999.50"), D("-0.01"), D("0.00"), D("1.25"), D("9999999.99"), None), ("{}", "bucket(7, {})", "truncate(50, {})")),
    Type("c_dec18", "DECIMAL(18, 4)", pa.decimal128(18, 4), (D("-99999999999999.9999"), D("0.0001"), D("14.2000"), D("99999999999999.9999"), None), ("{}", "bucket(7, {})", "truncate(7, {})")),
    Type("c_dec38", "DECIMAL(38, 10)", pa.decimal128(38, 10), (D("-9999999999999999999999999999.9999999999"), D("0E-10"), D("12345.6789012345"), D("9999999999999999999999999999.9999999999"), None), ("{}", "bucket(7, {})", "truncate(9, {})")),
    Type("c_date", "DATE", pa.date32(), tuple(ts(s).date() for s in STAMPS[:8]) + (None,), TIME_TRANSFORMS),
    Type("c_time", "TIME", pa.time64("us"), (dt.time(0), dt.time(12, 34, 56, 789012), dt.time(23, 59, 59, 999999), None), ("{}", "bucket(7, {})"), spark=False),
    Type("c_ts", "TIMESTAMP", pa.timestamp("us"), tuple(ts(s) for s in STAMPS) + (None,), TIME_TRANSFORMS + ("hour({})",)),
    Type("c_tstz", "TIMESTAMPTZ", pa.timestamp("us", "UTC"), tuple(ts(s, UTC) for s in STAMPS) + (None,), TIME_TRANSFORMS + ("hour({})",)),
    Type(
        "c_string", "VARCHAR", pa.string(),
        ("", "a", "null", "Größe €", "日本語のテキスト", "x" * 40, "a/b=c d%20", "😀😀😀", SURROGATE_NEIGHBOUR, "ab", "abc", "abcd", None),
        ("{}", "bucket(7, {})", "truncate(3, {})", "void({})"),
    ),
    Type("c_uuid", "UUID", pa.binary(16), tuple(U) + (None,), ("{}", "bucket(7, {})")),
    Type("c_fixed", "FIXED(4)", pa.binary(4), (b"\0\0\0\0", b"abcd", b"\xff\xff\xff\xff", b"\x7f\x80\0\1", None), ("{}", "bucket(7, {})")),
    Type("c_binary", "BLOB", pa.binary(), (b"", b"\0", b"abc", b"\xff" * 20, b"ab'\\\"", None), ("{}", "bucket(7, {})", "truncate(2, {})")),
]

NESTED = [
    Type("c_list", "INTEGER[]", pa.list_(pa.int32()), ([1, None, -5], [], [7], None), filters=False),
    Type("c_list2", "VARCHAR[][]", pa.list_(pa.list_(pa.string())), ([["a", None], []], [], [None], None), filters=False),
    Type(
        "c_struct", "STRUCT(a INTEGER, b VARCHAR, c STRUCT(d DOUBLE))", pa.struct([("a", pa.int32()), ("b", pa.string()), ("c", pa.struct([("d", pa.float64())]))]),
        ({"a": 1, "b": "x", "c": {"d": 0.5}}, {"a": None, "b": "", "c": {"d": None}}, {"a": -7, "b": None, "c": None}, None), filters=False,
    ),
    Type("c_map", "MAP(VARCHAR, BIGINT)", pa.map_(pa.string(), pa.int64()), ([("k", 1), ("", None)], [], [("ü", -1)], None), filters=False),
    Type(
        "c_deep", "MAP(INTEGER, STRUCT(l DATE[]))", pa.map_(pa.int32(), pa.struct([("l", pa.list_(pa.date32()))])),
        ([(1, {"l": [dt.date(1969, 12, 31), None]})], [(0, {"l": None}), (2, {"l": []})], None), filters=False,
    ),
]


@dataclasses.dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Type, ...]
    partition: tuple[str, ...] = ()
    clause: str = ""  # further clauses of CREATE TABLE

    @property
    def spark(self):
        return all(c.spark for c in self.columns)

    def ddl(self, catalog: str, schema: str) -> str:
        cols = ", ".join(["id BIGINT NOT NULL"] + [f"{c.name} {c.sql}" for c in self.columns])
        part = f" PARTITIONED BY ({', '.join(self.partition)})" if self.partition else ""
        return f"CREATE TABLE {catalog}.{schema}.{self.name} ({cols}){part}{self.clause}"


ID = Type("id", "BIGINT", pa.int64(), ())


def column(table: Table, name: str) -> Type:
    return next(c for c in (ID,) + table.columns if c.name == name)


def by_name(*names: str) -> tuple[Type, ...]:
    return tuple(next(t for t in TYPES + NESTED if t.name == n) for n in names)


def word(transform: str) -> str:
    return transform.split("(")[0].strip("{}") or "identity"


def tables() -> list[Table]:
    spark = tuple(t for t in TYPES if t.spark)
    out = [
        Table("plain", spark),
        Table("plain_time", by_name("c_time", "c_string")),
        Table("nested", tuple(NESTED)),
        Table("by_month_all", spark + tuple(NESTED), ("month(c_ts)",)),
        Table("sorted", by_name("c_string", "c_int"), (), " ORDERED BY (c_int DESC NULLS LAST, c_string)"),
        Table("options", by_name("c_string", "c_long"), (), " WITH ('write.parquet.compression-codec' = 'snappy', 'write.metadata.metrics.default' = 'full', 'write.metadata.metrics.column.c_long' = 'none')"),
        # Several at once, among them a void between others.
        Table("multi_1", by_name("c_ts", "c_string"), ("month(c_ts)", "bucket(3, id)", "truncate(2, c_string)")),
        Table("multi_2", by_name("c_boolean", "c_date", "c_tstz"), ("c_boolean", "year(c_date)", "hour(c_tstz)")),
        Table("multi_3", by_name("c_int", "c_dec18", "c_uuid"), ("truncate(10, c_int)", "void(c_dec18)", "bucket(4, c_uuid)")),
        Table("multi_4", by_name("c_date", "c_ts"), ("year(c_date)", "bucket(2, id)", "day(c_ts)")),
    ]
    for t in TYPES:
        for tr in t.transforms:
            companion = by_name("c_string" if t.name != "c_string" else "c_int")
            out.append(Table(f"{t.name[2:]}_{word(tr)}", (t,) + companion, (tr.format(t.name),)))
    return out


TABLES = tables()

# Tables that PyIceberg 0.12 reads but cannot append to, by its own fault: partition values of a time column fail in partition_to_path,
# and pyarrow cannot group by uuid.
PYICEBERG_CANNOT_APPEND = {"time_identity", "time_bucket", "uuid_identity"}


def rows(table: Table, first: int = 0, count: int = ROWS) -> list[dict]:
    """Rows first.. of a table. Each column cycles at its own pace, so that combinations differ."""
    out = []
    for i in range(first, first + count):
        row = {"id": i}
        for n, c in enumerate(table.columns):
            row[c.name] = c.values[(i + i // 7 * n) % len(c.values)]
        out.append(row)
    return out


def for_pyiceberg(data: list[dict]) -> list[dict]:
    """The rows as PyIceberg can write them: it has no bound for the one text, and makes an empty map of a NULL map of structs."""
    for r in data:
        if r.get("c_string") == SURROGATE_NEIGHBOUR:
            r["c_string"] = "\ue000"
        if "c_deep" in r:
            r["c_deep"] = r["c_deep"] or []
    return data


def arrow_table(table: Table, data: list[dict]) -> pa.Table:
    arrays, fields = [], []
    for c in (ID,) + table.columns:
        values = [r[c.name] for r in data]
        if c.name == "c_uuid":
            storage = pa.array([v.bytes if v else None for v in values], pa.binary(16))
            arrays.append(pa.ExtensionArray.from_storage(pa.uuid(), storage))
        else:
            arrays.append(pa.array(values, c.arrow))
        fields.append(pa.field(c.name, arrays[-1].type, nullable=c is not ID))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def write_input(table: Table, data: list[dict], path: pathlib.Path) -> pathlib.Path:
    pq.write_table(arrow_table(table, data), path, row_group_size=64)
    return path


# ---- comparing ----------------------------------------------------------------------------------------------------------------------


def norm(v):
    """One form for values that readers return differently. NaN becomes a text, since it differs from itself."""
    if isinstance(v, float) and v != v:
        return "NaN"
    if isinstance(v, (bytes, bytearray, memoryview)):
        return bytes(v).hex()
    if isinstance(v, uuid.UUID):
        return v.bytes.hex()
    if isinstance(v, dict):
        return {k: norm(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [norm(x) for x in v]
    if isinstance(v, dt.datetime) and v.tzinfo is not None:
        return v.astimezone(UTC).isoformat()
    return v


def as_pyiceberg_reads(data: list[dict]) -> list[dict]:
    """PyIceberg 0.12 reads a NULL map of structs as an empty map, also in its own files."""
    return [{**r, "c_deep": r["c_deep"] or []} if "c_deep" in r else r for r in data]


def canonical(data: list[dict]) -> list[dict]:
    out = []
    for r in data:
        row = {k: norm(v) for k, v in r.items()}
        for k in ("c_map", "c_deep"):  # maps have no order
            if row.get(k):
                row[k] = sorted(row[k], key=lambda pair: str(pair[0]))
        out.append(row)
    return sorted(out, key=lambda r: r["id"])


@dataclasses.dataclass(frozen=True)
class Filter:
    column: str
    op: str  # eq, ge, lt, null
    value: object = None

    def matches(self, v) -> bool:
        if self.op == "null":
            return v is None
        if v is None or (isinstance(v, float) and v != v):
            return False
        return v == self.value if self.op == "eq" else v >= self.value if self.op == "ge" else v < self.value


def filters(table: Table) -> list[Filter]:
    """For each column: equality with its smallest and largest value, a range at each end, IS NULL."""
    out = [Filter("id", "eq", 0), Filter("id", "eq", ROWS - 1), Filter("id", "ge", ROWS - 3), Filter("id", "lt", 2)]
    for c in table.columns:
        out.append(Filter(c.name, "null"))
        if not c.filters:
            continue
        values = sorted({v for v in c.values if v is not None and v == v}, key=lambda v: v.bytes if isinstance(v, uuid.UUID) else v)
        out += [Filter(c.name, "eq", v) for v in dict.fromkeys((values[0], values[-1], values[len(values) // 2]))]
        if not c.nan and c.name not in ("c_uuid", "c_boolean"):
            out += [Filter(c.name, "ge", values[-1]), Filter(c.name, "lt", values[1])]
    return out


def pyiceberg_can_filter(c: Type, f: Filter) -> bool:
    """What PyIceberg 0.12 cannot ask of a table that it wrote itself (see README: INTEROP_WRITER): rows by uuid (no kernel in pyarrow),
    infinities (taken for out of range), NULL lists, maps and structs (cannot be projected)."""
    return not (c.name == "c_uuid" and f.op != "null" or isinstance(f.value, float) and abs(f.value) == float("inf") or c in NESTED)


# Tables that Spark 4.0 with Iceberg 1.11 cannot read, also when PyIceberg wrote them: identity(fixed) fails in every query.
SPARK_CANNOT_READ = {"fixed_identity"}


def spark_can_filter(table: Table, c: Type, f: Filter) -> bool:
    """Iceberg's Java code compares UUIDs as signed numbers, the specification and everybody else as bytes: where a file or a manifest has UUIDs of
    both kinds it prunes wrongly, also PyIceberg's. The widest table repeats the columns of `plain`: there only the partitioned one is asked."""
    if c.name == "c_uuid" and f.op != "null" and "bucket(4, c_uuid)" not in table.partition and "bucket(7, c_uuid)" not in table.partition:
        return False
    return table.name != "by_month_all" or c.name in ("id", "c_ts") or c in NESTED


def expected(data: list[dict], f: Filter) -> list[int]:
    return sorted(r["id"] for r in data if f.matches(r[f.column]))
