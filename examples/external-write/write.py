"""Another engine writes the files, Signet commits them: an external write session from Python with pyarrow.

    write.py ADDRESS TABLE KEY TASKS

The stubs in signet_api are generated from api/ by run.sh.
"""

import hashlib
import os
import sys

import grpc
import pyarrow as pa
import pyarrow.parquet as pq

from plan.v1 import plan_pb2 as plan
from scheduler.v1 import scheduler_pb2 as scheduler
from scheduler.v1 import scheduler_pb2_grpc as scheduler_grpc


def schema_of(spec):
    """The table's columns as Parquet files of it have them: with the table's own field ids."""
    types = {plan.TYPE_KIND_INT64: pa.int64(), plan.TYPE_KIND_STRING: pa.string()}
    return pa.schema(
        pa.field(f.name, types[f.type.kind], nullable=not f.required, metadata={"PARQUET:field_id": str(f.id)})
        for f in spec.schema.fields
    )


def write_task(api, job, spec, task):
    """One task of the write: files below a prefix of its own, and a task manifest that lists them."""
    # A task that is tried again begins another attempt, with another prefix. The manifest that is accepted first counts.
    attempt = api.BeginAttempt(scheduler.BeginAttemptRequest(job_id=job, task=task))
    directory = attempt.prefix.removeprefix("file://")
    os.makedirs(directory, exist_ok=True)
    name = f"{attempt.stage}-{task}-{attempt.attempt_id}-0.parquet"
    rows = pa.table({"id": range(task * 1000, task * 1000 + 1000), "engine": ["pyarrow"] * 1000}, schema=schema_of(spec))
    pq.write_table(rows, os.path.join(directory, name), compression="zstd")

    size = os.path.getsize(os.path.join(directory, name))
    files = plan.DataFiles(files=[
        plan.DataFile(path=f"{attempt.prefix}/{name}", format=plan.FILE_FORMAT_PARQUET, record_count=rows.num_rows, size_bytes=size),
    ]).SerializeToString()
    header = plan.ManifestHeader(
        job_id=job, stage=attempt.stage, task=task, attempt_id=attempt.attempt_id, epoch=attempt.epoch,
        table_uuid=spec.table_uuid, schema_id=spec.schema_id, spec_id=spec.spec_id, prefix=attempt.prefix,
    )
    trailer = plan.ManifestTrailer(files=1, rows=rows.num_rows, bytes=size, sha256=hashlib.sha256(files).digest())
    chunks = [plan.ManifestChunk(header=header), plan.ManifestChunk(files=files), plan.ManifestChunk(trailer=trailer)]
    answer = api.AcceptManifest(scheduler.AcceptManifestRequest(chunk=c) for c in chunks)
    if not answer.accepted:
        raise SystemExit(f"task {task}: refused: {answer.reason}")
    print(f"task {task}: {rows.num_rows} rows accepted")


def main():
    address, table, key, tasks = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    with grpc.insecure_channel(address) as channel:
        api = scheduler_grpc.SchedulerStub(channel)
        begun = api.BeginWrite(scheduler.BeginWriteRequest(table=table, idempotency_key=key, tasks=tasks))
        if begun.existing:
            print("this key has been used: the tasks that are accepted already count, others would be refused")
        else:
            for task in range(tasks):  # any processes, on any machines that reach the table's storage
                write_task(api, begun.job_id, begun.spec, task)
        job = api.FinishWrite(scheduler.FinishWriteRequest(job_id=begun.job_id)).job
        print(f"the write is {scheduler.JobState.Name(job.state)}")


if __name__ == "__main__":
    main()
