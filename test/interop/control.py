"""INTEROP_WRITER=pyiceberg: the matrix as PyIceberg writes it, to tell a reader's defects from ours."""
import pathlib
import re

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType, MapType, NestedField,
    StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType,
)

import matrix
from cluster import CATALOG


class Catalog:
    def __init__(self, directory: pathlib.Path):
        self.dir, self.db, self.warehouse = directory, directory / "catalog.db", directory / "warehouse"
        self.warehouse.mkdir()
        self.delta = directory / "delta"
        self.catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{self.db}", warehouse=f"file://{self.warehouse}")

    def pyiceberg(self):
        return self.catalog


SIMPLE = {
    "BOOLEAN": BooleanType(), "INTEGER": IntegerType(), "BIGINT": LongType(), "REAL": FloatType(), "DOUBLE": DoubleType(), "DATE": DateType(), "TIME": TimeType(),
    "TIMESTAMP": TimestampType(), "TIMESTAMPTZ": TimestamptzType(), "VARCHAR": StringType(), "UUID": UUIDType(), "BLOB": BinaryType(), "FIXED(4)": FixedType(4),
    "DECIMAL(9, 2)": DecimalType(9, 2), "DECIMAL(18, 4)": DecimalType(18, 4), "DECIMAL(38, 10)": DecimalType(38, 10),
}


class Ids:
    def __init__(self):
        self.last = 0

    def __call__(self):
        self.last += 1
        return self.last


def nested(sql: str, new):
    if sql in SIMPLE:
        return SIMPLE[sql]
    if sql.endswith("[]"):
        return ListType(element_id=new(), element_type=nested(sql[:-2], new), element_required=False)
    name, inner = re.fullmatch(r"(\w+)\((.*)\)", sql).groups()
    parts, depth, cur = [], 0, ""
    for ch in inner + ",":
        depth += (ch == "(") - (ch == ")")
        if ch == "," and depth == 0:
            parts.append(cur.strip())
            cur = ""
        else:
            cur += ch
    if name == "MAP":
        return MapType(key_id=new(), key_type=nested(parts[0], new), value_id=new(), value_type=nested(parts[1], new), value_required=False)
    fields = [p.split(" ", 1) for p in parts]
    return StructType(*[NestedField(new(), n, nested(t, new), required=False) for n, t in fields])


def fill(filled, schema_name: str):
    catalog = filled.cluster.catalog
    catalog.create_namespace(schema_name)
    for t in matrix.TABLES:
        new = Ids()
        fields = [NestedField(new(), "id", LongType(), required=True)]
        fields += [NestedField(new(), c.name, nested(c.sql, new), required=False) for c in t.columns]
        schema = Schema(*fields)
        spec = []
        for n, p in enumerate(t.partition):
            m = re.fullmatch(r"(\w+)\((?:(\d+), )?(\w+)\)", p)
            kind, arg, col = m.groups() if m else ("identity", None, p)
            text = kind + (f"[{arg}]" if arg else "")
            spec.append(PartitionField(schema.find_field(col).field_id, 1000 + n, parse_transform(text), f"p{n}_{kind}"))
        table = catalog.create_table((schema_name, t.name), schema, partition_spec=PartitionSpec(*spec))
        try:
            for _ in range(3):
                table.append(matrix.arrow_table(t, filled.take(t, matrix.ROWS // 3, matrix.for_pyiceberg)))
        except Exception as e:  # the reader's own limits are what this mode is for
            print(f"PyIceberg cannot write {t.name}: {type(e).__name__}: {e}")
            filled.unwritable.add(t.name)
