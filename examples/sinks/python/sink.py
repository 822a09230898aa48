"""python, a sink for Signet. A table is a directory:

_schema.json                          the table as CREATE TABLE made it, written once
_manifest/00000000000000000000.json   one for each commit, numbered without gaps: its files, and the markers of its jobs
data/...                              Parquet files, written by executors

Readers take the files that the manifests name. To create the next number is to commit: the host lets exactly one through.
"""

import uuid

import signet_sink as s
from signet_sink import plan_pb2, sink_pb2


class Sink(s.Sink):
    def describe(self):
        return sink_pb2.DescribeResponse(
            name="python", version="0.1.0", summary="Parquet files in a directory, committed by numbered manifests",
            commit_point=sink_pb2.COMMIT_POINT_STORAGE, creates=["_schema.json", "_manifest/*.json"], commit_points=["_manifest/*.json"],
        )

    def create_table(self, host, request):
        definition = request.definition
        if definition.partition or definition.sort:
            raise s.Refusal(s.PERMANENT, "the sink python has no partitions and no sort order: create the table without them")
        s.number_fields(definition.schema)
        location = host.location()
        table = sink_pb2.DescribeTableResponse(schema=definition.schema, table_uuid=str(uuid.uuid4()), location=location, format_version=1)
        host.put_json(location + "/_schema.json", table)
        return sink_pb2.CreateTableResponse(table_uuid=table.table_uuid, location=location)

    def prepare_write(self, host, request):
        table, _ = load(host, request.table)
        return sink_pb2.PrepareWriteResponse(spec=plan_pb2.WriteSpec(
            table_uuid=table.table_uuid, schema=table.schema, data_location=table.location + "/data", base_version=table.version,
            format_version=1, files=plan_pb2.FileRules(codec="zstd"),
        ))

    def stage(self, host, header, manifests):
        return s.stage_files(manifests)

    def commit(self, host, request):
        files, markers = s.staged_files(request.units)
        attempt = 0
        while True:
            attempt += 1
            table, commits = load(host, request.table)
            if table.table_uuid != request.spec.table_uuid:
                raise s.Refusal(s.PERMANENT, "the table was dropped and created again since the write began")
            number, outcome = find(commits, markers), sink_pb2.OUTCOME_ALREADY_COMMITTED
            if number is None:
                number, outcome = len(commits), sink_pb2.OUTCOME_COMMITTED
                try:
                    host.put_json(
                        uri(table, number), {"markers": markers, "files": files}, version=version(number), parent=table.version, markers=markers
                    )
                except s.Refusal as refusal:  # any other error goes to the host, which asks again where the answer was lost
                    if refusal.kind == s.CONFLICT and attempt < request.max_attempts:
                        continue
                    raise
            return sink_pb2.CommitResponse(outcome=outcome, version=version(number), location=uri(table, number), attempts=attempt)

    def lookup(self, host, request):
        number = find(load(host, request.table)[1], [request.marker])
        return sink_pb2.LookupResponse(found=number is not None, version="" if number is None else version(number))

    def describe_table(self, host, request):
        return load(host, request.table)[0]

    def plan_scan(self, host, request):
        table, commits = load(host, request.table)
        at = request.version or table.version
        yield sink_pb2.PlanScanResponse(schema=table.schema, version=at, table_uuid=table.table_uuid)
        files = [sink_pb2.ScanFile(**f) for number, c in enumerate(commits) if version(number) <= at for f in c["files"]]
        for i in range(0, len(files), 1000):
            yield sink_pb2.PlanScanResponse(files=files[i : i + 1000])


def load(host, ref):
    """The table with its current version, and its commits, oldest first."""
    location, commits = host.location(), []
    try:
        table = host.get_json(location + "/_schema.json", sink_pb2.DescribeTableResponse())
    except s.Refusal as refusal:
        if refusal.kind == s.NOT_FOUND:
            raise s.Refusal(s.NOT_FOUND, f"table {ref.name} does not exist")
        raise
    while True:  # the first number missing ends the table
        try:
            commits.append(host.get_json(uri(table, len(commits))))
        except s.Refusal as refusal:
            if refusal.kind != s.NOT_FOUND:
                raise
            if commits:
                table.version = version(len(commits) - 1)
            return table, commits


def version(number):
    return f"{number:020d}"


def uri(table, number):
    return f"{table.location}/_manifest/{version(number)}.json"


def find(commits, markers):
    """The number of the commit that holds one of the markers, or None."""
    return next((n for n, c in enumerate(commits) if set(markers) & set(c["markers"])), None)


def main():
    s.serve(Sink())


if __name__ == "__main__":
    main()
