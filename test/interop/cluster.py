"""A Signet cluster for tests: `signet scheduler` with local executors, in a directory of its own, and `signet sql` to talk to it."""
import json
import os
import pathlib
import subprocess
import threading

BIN = pathlib.Path(os.environ.get("SIGNET_BIN", "../../bin")).resolve()
CATALOG = "lake"
DELTA = "dl"


class Cluster:
    def __init__(self, directory: pathlib.Path, executors: int = 2, more: str = "", catalogs: str = ""):
        self.dir = directory
        self.warehouse = directory / "warehouse"
        self.db = directory / "catalog.db"
        self.landing = directory / "landing"  # files that may stay where they are
        self.delta = directory / "delta"  # the root of the Delta tables
        self.warehouse.mkdir(parents=True)
        self.landing.mkdir()
        self.delta.mkdir()
        self.config = directory / "signet.yaml"
        self.config.write_text(
            f"data_dir: {directory}/data\n"
            "listen: 127.0.0.1:0\n"
            "flight:\n"
            "  listen: 127.0.0.1:0\n"
            "  endpoint_bytes: 1MiB\n"
            "catalogs:\n"
            f"  {CATALOG}:\n"
            "    type: sql\n"
            f"    uri: sqlite://{self.db}\n"
            f"    warehouse: file://{self.warehouse}\n"
            f"    add_files_paths: [file://{self.landing}]\n"
            "    maintenance: {expire_snapshots: {after_commits: 3}}\n"  # only tables that say so have snapshots that young expire
            f"  {DELTA}:\n"
            "    type: delta\n"
            f"    root: file://{self.delta}\n"
            + catalogs +
            "executors:\n"
            f"  local: {executors}\n"
            "  slots: 2\n"
            "  threads: 1\n"
            "  memory_limit: 1GiB\n" + more
        )
        self.log = open(directory / "scheduler.log", "w")
        self.process = subprocess.Popen(
            [BIN / "signet", "scheduler", "--config", self.config], stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            self.stop()
            raise RuntimeError("the scheduler did not start:\n" + (directory / "scheduler.log").read_text()[-2000:])
        self.address = line.split()[-1]
        self.flight = self.process.stdout.readline().removeprefix("flight sql on ").strip()
        # Nothing more comes, but a full pipe would block the scheduler.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def sql(self, script: str, key: str = "", check: bool = True, settings: dict | None = None) -> list[dict]:
        """Runs a script and returns the rows of all its statements, as JSON gives them."""
        args = [BIN / "signet", "sql", "--scheduler", self.address, "--output", "json", "--quiet", "-"]
        if key:
            args[2:2] = ["--idempotency-key", key]
        for name, value in (settings or {}).items():
            args[2:2] = ["--set", f"{name}={value}"]
        r = subprocess.run(args, input=script, capture_output=True, text=True, timeout=300)
        if check and r.returncode != 0:
            raise RuntimeError(f"exit {r.returncode}: {r.stderr.strip()}\n{script[:2000]}")
        return [json.loads(line) for line in r.stdout.splitlines()]

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.log.close()

    def pyiceberg(self):
        from pyiceberg.catalog.sql import SqlCatalog

        return SqlCatalog(CATALOG, uri=f"sqlite:///{self.db}", warehouse=f"file://{self.warehouse}")
