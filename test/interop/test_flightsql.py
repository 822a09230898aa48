"""The Python ADBC driver for Flight SQL: queries, parameters, ingest, metadata, errors, cancel."""
import datetime
import decimal
import os
import pathlib
import re
import signal
import threading

import pyarrow as pa
import pytest
from adbc_driver_flightsql import DatabaseOptions
from adbc_driver_flightsql import dbapi
from adbc_driver_manager import dbapi as manager

from cluster import CATALOG, Cluster

pytestmark = pytest.mark.skipif(os.environ.get("INTEROP_WRITER") == "pyiceberg", reason="the writer is PyIceberg")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMA = "flight"
HEADER = "adbc.flight.sql.rpc.call_header."


@pytest.fixture(scope="module")
def schema(cluster):
    cluster.sql(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.{SCHEMA}")
    return f"{CATALOG}.{SCHEMA}"


@pytest.fixture
def conn(cluster, schema):
    with dbapi.connect(f"grpc://{cluster.flight}", autocommit=True) as c:
        yield c


@pytest.fixture
def cur(conn):
    with conn.cursor() as c:
        yield c


def snapshots(cluster, table):
    return cluster.pyiceberg().load_table((SCHEMA, table)).snapshots()


def test_query(cur):
    cur.execute("SELECT i AS n, 'text ' || i AS s, i::DECIMAL(9,2) AS d, NULL::DATE AS x FROM range(5000) r(i) ORDER BY i")
    t = cur.fetch_arrow_table()
    assert t.num_rows == 5000 and t["n"].to_pylist() == list(range(5000))
    assert t.schema == pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.decimal128(9, 2)), ("x", pa.date32())])
    cur.execute("SELECT 1 AS a, 'b' AS b WHERE false")
    empty = cur.fetch_arrow_table()
    assert empty.num_rows == 0 and empty.schema == pa.schema([("a", pa.int32()), ("b", pa.string())])
    assert [d[0] for d in cur.description] == ["a", "b"]


def test_large_results_come_from_executors(cur, cluster):
    query = "SELECT i, repeat('x', 100) AS s FROM range(300000) r(i) ORDER BY i DESC"
    partitions, schema = cur.adbc_execute_partitions(query)
    assert len(partitions) == 1 and b"grpc+tcp://127.0.0.1:" in partitions[0] and schema.names == ["i", "s"]
    os.kill(cluster.process.pid, signal.SIGSTOP)  # the scheduler has no part in it
    try:
        cur.adbc_read_partition(partitions[0])
        got = cur.fetch_arrow_table()
    finally:
        os.kill(cluster.process.pid, signal.SIGCONT)
    assert got["i"].to_pylist() == list(range(299999, -1, -1))
    cur.execute(query)
    assert cur.fetch_arrow_table().equals(got)


def test_tokens(tmp_path):
    (tmp_path / "token").write_text("s3cret")
    c = Cluster(tmp_path / "cluster", 1, f"auth:\n  tokens:\n    - {{principal: ann, token: {{file: {tmp_path}/token}}}}\n")
    try:
        for shown in ({"username": "ann", "password": "s3cret"}, {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer s3cret"}):
            with dbapi.connect(f"grpc://{c.flight}", db_kwargs=shown, autocommit=True) as conn, conn.cursor() as cur:
                cur.execute("SELECT 1")
                assert cur.fetchone() == (1,)
                partitions, _ = cur.adbc_execute_partitions("SELECT repeat('x', 100) AS s FROM range(100000)")
                os.kill(c.process.pid, signal.SIGSTOP)
                try:
                    cur.adbc_read_partition(partitions[0])  # the executor asks for the token too
                    assert cur.fetch_arrow_table().num_rows == 100000
                finally:
                    os.kill(c.process.pid, signal.SIGCONT)
        for shown in ({}, {"username": "ann"}, {"username": "ann", "password": "wrong"}, {"username": "bob", "password": "s3cret"}):
            with pytest.raises(dbapi.Error, match="UNAUTHENTICATED.*Bearer"):
                with dbapi.connect(f"grpc://{c.flight}", db_kwargs=shown, autocommit=True) as conn, conn.cursor() as cur:
                    cur.execute("SELECT 1")
    finally:
        c.stop()


def examples(path):
    """The Python examples of a page, made for this cluster."""
    text = (ROOT / path).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.S)


@pytest.mark.parametrize("page", ["README.md", "docs/flight-sql.md"])
def test_examples_work(cluster, page):
    cluster.sql(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.sales; CREATE SCHEMA IF NOT EXISTS {CATALOG}.archive; CREATE SCHEMA IF NOT EXISTS {CATALOG}.demo")
    for table in ("sales.orders", "archive.orders"):
        cluster.sql(f"CREATE TABLE IF NOT EXISTS {CATALOG}.{table} (id BIGINT, note VARCHAR)")
    cluster.sql(f"INSERT INTO {CATALOG}.sales.orders VALUES (7, 'old'), (101, 'new')")
    cluster.sql(f"CREATE TABLE IF NOT EXISTS {CATALOG}.demo.flights AS SELECT * FROM '{ROOT}/examples/data/flights.parquet' LIMIT 10000")
    found = examples(page)
    assert found
    for code in found:
        assert "127.0.0.1:7430" in code
        exec(compile(code.replace("127.0.0.1:7430", cluster.flight), page, "exec"), {})


def test_statements_and_their_results(cur, cluster, schema):
    cur.execute(f"CREATE TABLE {schema}.life (id BIGINT, s VARCHAR)")
    cur.execute(f"INSERT INTO {schema}.life VALUES (1, 'a')")  # prepared, and known to be an update by then
    assert cur.rowcount == 1
    cur.adbc_statement.set_sql_query(f"INSERT INTO {schema}.life VALUES (2, NULL), (3, 'c')")
    stream, _ = cur.adbc_statement.execute_query()
    result = pa.RecordBatchReader._import_from_c(stream.address).read_all().to_pylist()[0]  # S53: what the root answered
    assert result["rows"] == 2 and result["table"] == f"{schema}.life"
    cur.execute(f"SELECT * FROM {schema}.life ORDER BY id")
    assert cur.fetchall() == [(1, "a"), (2, None), (3, "c")]
    assert len(snapshots(cluster, "life")) == 2
    cur.execute(f"DROP TABLE {schema}.life")


VALUES = [
    True, 7, -(2**63), 2**53 + 1, 0.1, float("inf"), "it's", "", "'; DROP TABLE x; --", b"\x00\xff'", decimal.Decimal("-12.340"),
    datetime.date(2024, 2, 29), datetime.datetime(1969, 12, 31, 23, 59, 59, 1), datetime.time(23, 59, 59, 999999), None,
]


def test_parameters(cur):
    for v in VALUES:
        cur.execute("SELECT ? AS v, ? IS NULL AS n", (v, v))
        assert cur.fetchone() == (v, v is None), v
    at = datetime.datetime(2024, 7, 1, 12, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    cur.execute("SELECT ? AS v", pa.record_batch({"v": pa.array([at], pa.timestamp("us", "UTC"))}))
    assert cur.fetchone()[0] == at
    cur.execute("SELECT $2 - $1 AS v", (1, 10))
    assert cur.fetchone() == (9,)
    cur.execute("SELECT count(*) FROM range(100) r(i) WHERE i BETWEEN ? AND ?", (10, 19))
    assert cur.fetchone() == (10,)
    with pytest.raises(dbapi.Error, match="2 parameters and 1 columns"):
        cur.execute("SELECT ?, ?", (1,))


def test_many_rows_of_parameters_are_one_commit(cur, cluster, schema):
    cur.execute(f"CREATE TABLE {schema}.many (id BIGINT, s VARCHAR, d DATE)")
    rows = [(i, None if i % 7 == 0 else f"row {i}'", datetime.date(2024, 1, 1) + datetime.timedelta(i)) for i in range(1000)]
    cur.executemany(f"INSERT INTO {schema}.many VALUES (?, ?, ?)", rows)
    assert cur.rowcount == 1000
    cur.execute(f"SELECT * FROM {schema}.many ORDER BY id")
    assert cur.fetchall() == rows
    assert len(snapshots(cluster, "many")) == 1


def everything(n: int) -> pa.Table:
    ids = list(range(n))
    return pa.table({
        "id": pa.array(ids, pa.int64()), "small": pa.array([i % 100 for i in ids], pa.int8()), "f": pa.array([i / 3 for i in ids], pa.float64()),
        "s": pa.array([None if i % 5 == 0 else f"text {i}" for i in ids], pa.string()), "big": pa.array(["x" * (i % 50) for i in ids], pa.large_string()),
        "view": pa.array([f"a view of text number {i}" for i in ids], pa.string_view()), "b": pa.array([i.to_bytes(4, "big") for i in ids], pa.binary()),
        "dict": pa.array(["red", "green", None][i % 3] for i in ids).dictionary_encode(), "day": pa.array([datetime.date(2000, 1, 1) + datetime.timedelta(i % 9000) for i in ids]),
        "ts": pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=i) for i in ids], pa.timestamp("ns")),
        "tz": pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=i) for i in ids], pa.timestamp("ns", "Europe/Berlin")),
        "dec": pa.array([decimal.Decimal(i) / 100 for i in ids], pa.decimal128(12, 2)), "ok": pa.array([i % 2 == 0 for i in ids]),
        "list": pa.array([[i, None] for i in ids], pa.list_(pa.int32())), "st": pa.array([{"a": i, "b": str(i)} for i in ids]),
    })


def test_ingest(cur, cluster, schema):
    data = everything(3000)
    assert cur.adbc_ingest("bulk", data, mode="create", db_schema_name=SCHEMA) == 3000
    assert cur.adbc_ingest("bulk", data.to_reader(max_chunksize=100), mode="append", catalog_name=CATALOG, db_schema_name=SCHEMA) == 3000
    assert cur.adbc_ingest("bulk", data, mode="create_append", db_schema_name=SCHEMA) == 3000
    assert cur.adbc_ingest("other", data, mode="create_append", db_schema_name=SCHEMA) == 3000
    assert len(snapshots(cluster, "bulk")) == 3
    got = cluster.pyiceberg().load_table((SCHEMA, "bulk")).scan().to_arrow()
    assert got.num_rows == 9000
    one = cluster.pyiceberg().load_table((SCHEMA, "other")).scan().to_arrow().sort_by("id")
    for name in data.column_names:
        want = data[name].cast(pa.timestamp("us")) if name == "ts" else data[name]
        assert one[name].to_pylist() == want.to_pylist(), name
    with pytest.raises(dbapi.Error, match="exists"):
        cur.adbc_ingest("bulk", data, mode="create", db_schema_name=SCHEMA)
    with pytest.raises(dbapi.Error, match="replace"):
        cur.adbc_ingest("bulk", data, mode="replace", db_schema_name=SCHEMA)
    with pytest.raises(dbapi.Error, match="does not exist"):
        cur.adbc_ingest("none", data, mode="append", db_schema_name=SCHEMA)
    assert len(snapshots(cluster, "bulk")) == 3
    assert list((cluster.dir / "data" / "inputs").iterdir()) == []


def test_ingest_of_a_source_that_breaks(cur, cluster, schema):
    def batches():
        yield pa.record_batch({"id": pa.array([1, 2], pa.int64())})
        raise RuntimeError("the source broke")

    cur.execute(f"CREATE TABLE {schema}.broken (id BIGINT)")
    with pytest.raises(Exception, match="the source broke|Unknown error|IO"):
        cur.adbc_ingest("broken", pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches()), mode="append", db_schema_name=SCHEMA)
    assert snapshots(cluster, "broken") == []


def test_key(conn, cluster, schema):
    with conn.cursor() as c:
        c.execute(f"CREATE TABLE {schema}.once (id BIGINT)")
    for _ in range(3):
        with conn.cursor(adbc_stmt_kwargs={HEADER + "signet-idempotency-key": "python-1"}) as c:
            c.execute(f"INSERT INTO {schema}.once VALUES (1)")
    assert len(snapshots(cluster, "once")) == 1


def test_metadata(conn, cluster, schema):
    with conn.cursor() as c:
        c.execute(f"CREATE TABLE {schema}.meta (id BIGINT NOT NULL, amount DECIMAL(9,2), note VARCHAR)")
    assert conn.adbc_get_table_types() == ["TABLE"]
    info = conn.adbc_get_info()
    assert info["vendor_name"] == "Signet"
    got = conn.adbc_get_table_schema("meta", db_schema_filter=SCHEMA)
    assert got.names == ["id", "amount", "note"] and got.field("amount").type == pa.decimal128(9, 2)
    objects = conn.adbc_get_objects(depth="all", db_schema_filter=SCHEMA, table_name_filter="met_").read_all().to_pylist()
    catalogs = {o["catalog_name"]: o for o in objects}
    (db,) = [s for s in catalogs[CATALOG]["catalog_db_schemas"] if s["db_schema_name"] == SCHEMA]
    (table,) = db["db_schema_tables"]
    assert table["table_name"] == "meta" and table["table_type"] == "TABLE"
    assert [c["column_name"] for c in table["table_columns"]] == ["id", "amount", "note"]


def test_errors(cur, schema):
    for statement, kind, says in [
        ("SELEKT 1", dbapi.ProgrammingError, "SELECT"), (f"SELECT * FROM {schema}.nowhere", dbapi.ProgrammingError, "does not exist"),
        ("SELECT CAST('x' AS INT)", dbapi.ProgrammingError, "'x'"), (f"CREATE SCHEMA {schema}", dbapi.ProgrammingError, "exists"),
    ]:
        with pytest.raises(dbapi.Error) as e:
            cur.execute(statement)
            cur.fetchall()
        assert says in str(e.value) and isinstance(e.value, kind), e.value
    cur.execute("SELECT 1")
    assert cur.fetchone() == (1,)


def test_transactions_are_refused(cluster):
    with pytest.warns(manager.Warning):
        with dbapi.connect(f"grpc://{cluster.flight}", autocommit=False):
            pass


def test_cancel(conn, cluster):
    with conn.cursor() as c:
        failed = []

        def run():
            try:
                c.execute("SELECT count(*) FROM range(100000000000) a(i), range(1000000) b(j)")
                c.fetchall()
            except dbapi.Error as e:
                failed.append(e)

        t = threading.Thread(target=run)
        t.start()
        while t.is_alive():  # a cancel that comes before the statement does nothing
            c.adbc_cancel()
            t.join(0.2)
        assert failed and "cancel" in str(failed[0]).lower()
    with conn.cursor() as c:
        c.execute("SELECT 1")
        assert c.fetchone() == (1,)


def test_session_defaults(cluster, schema):
    options = {DatabaseOptions.WITH_COOKIE_MIDDLEWARE.value: "true"}
    with dbapi.connect(f"grpc://{cluster.flight}", db_kwargs=options, autocommit=True) as c:
        c.adbc_current_db_schema = SCHEMA
        assert c.adbc_current_db_schema == SCHEMA
        with c.cursor() as cur:
            cur.execute("CREATE TABLE defaulted AS SELECT 1 AS id")
            cur.execute(f"SELECT * FROM {schema}.defaulted")
            assert cur.fetchall() == [(1,)]
    headers = {HEADER + "signet-schema": SCHEMA}
    with dbapi.connect(f"grpc://{cluster.flight}", db_kwargs=headers, autocommit=True) as c, c.cursor() as cur:
        cur.execute("SELECT * FROM defaulted")
        assert cur.fetchall() == [(1,)]


def test_concurrent_connections(cluster, schema):
    with dbapi.connect(f"grpc://{cluster.flight}", autocommit=True) as c, c.cursor() as cur:
        cur.execute(f"CREATE TABLE {schema}.race (who BIGINT, n BIGINT)")
    failures = []

    def client(who):
        try:
            with dbapi.connect(f"grpc://{cluster.flight}", autocommit=True) as c, c.cursor() as cur:
                for n in range(5):
                    cur.execute(f"INSERT INTO {schema}.race VALUES (?, ?)", (who, n))
                    cur.execute("SELECT ? + i FROM range(1000) r(i)", (who,))
                    assert [r[0] for r in cur.fetchall()] == [who + i for i in range(1000)]
        except Exception as e:  # reported by the test
            failures.append(e)

    threads = [threading.Thread(target=client, args=(w,)) for w in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    got = cluster.pyiceberg().load_table((SCHEMA, "race")).scan().to_arrow()
    assert sorted(zip(got["who"].to_pylist(), got["n"].to_pylist())) == [(w, n) for w in range(6) for n in range(5)]
