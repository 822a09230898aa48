"""What a sink for Signet in Python is built on: the Python side of plugins/sdk.

    class MySink(signet_sink.Sink): ...
    signet_sink.serve(MySink())

is the whole of a plugin. Methods run in threads, for different jobs and for the same one. Each gets a Host, which reads and creates objects of the one
table that the call is about, and commits. A plugin holds no credential and has no network of its own.
"""

from .host import Damaged, Host, Manifest, Manifests, Refusal, number_fields, stage_files, staged_files
from .host import ALREADY, CONFLICT, EXISTS, FENCED, NOT_FOUND, PERMANENT, RETRYABLE, UNKNOWN
from .plugin import serve
from .sink import Sink
from . import host_pb2, plan_pb2, sink_pb2

__all__ = [
    "Damaged", "Host", "Manifest", "Manifests", "Refusal", "Sink", "number_fields", "serve", "stage_files", "staged_files",
    "ALREADY", "CONFLICT", "EXISTS", "FENCED", "NOT_FOUND", "PERMANENT", "RETRYABLE", "UNKNOWN", "host_pb2", "plan_pb2", "sink_pb2",
]
