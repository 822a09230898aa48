"""The host as one call of a sink sees it, and the task manifests of a Stage call."""

import gzip
import hashlib
import json

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.message import DecodeError, Message

from . import host_pb2, plan_pb2, sink_pb2, wire

CONFLICT = host_pb2.REFUSAL_KIND_CONFLICT  # did not land, and cannot
UNKNOWN = host_pb2.REFUSAL_KIND_UNKNOWN  # sent, no definite answer
PERMANENT = host_pb2.REFUSAL_KIND_PERMANENT  # not allowed or not valid
ALREADY = host_pb2.REFUSAL_KIND_ALREADY  # the job has committed
FENCED = host_pb2.REFUSAL_KIND_FENCED  # cancelled, closed, or of an older epoch
RETRYABLE = host_pb2.REFUSAL_KIND_RETRYABLE  # nothing was sent
NOT_FOUND = host_pb2.REFUSAL_KIND_NOT_FOUND
EXISTS = host_pb2.REFUSAL_KIND_EXISTS

LEASE = "signet-lease"
DETAILS = "grpc-status-details-bin"
CHUNK = 1 << 20  # bytes in one message of a stream
FILES_IN_REF = 1000


class Refusal(Exception):
    """A definite answer of the host, or of a sink: raise Refusal(PERMANENT, "column x has type y, which ..."). UNKNOWN alone is not definite."""

    def __init__(self, kind, message, version="", location=""):
        super().__init__(message)
        self.kind, self.message, self.version, self.location = kind, message, version, location


class Damaged(Exception):
    """A task manifest is not what its trailer says."""


def refusal_in(error):
    """The Refusal that a gRPC error carries, or None: then the answer is missing."""
    for key, value in error.trailing_metadata() or ():
        if key != DETAILS:
            continue
        for detail in wire.Status.FromString(value).details:
            found = host_pb2.Refusal()
            if detail.type_url.endswith("/" + found.DESCRIPTOR.full_name):
                found.ParseFromString(detail.value)
                return Refusal(found.kind, found.message, found.version, found.location)
    return None


class Stubs:
    """The host's services over one connection."""

    def __init__(self, channel):
        for service in host_pb2.DESCRIPTOR.services_by_name.values():
            for m in service.methods:
                kind = ("stream_" if m.client_streaming else "unary_") + ("stream" if m.server_streaming else "unary")
                reply = message_factory.GetMessageClass(m.output_type)
                call = getattr(channel, kind)(
                    f"/{service.full_name}/{m.name}", request_serializer=lambda r: r.SerializeToString(), response_deserializer=reply.FromString
                )
                setattr(self, service.name + m.name, call)


class Host:
    """Speaks to the scheduler on behalf of one call. A refusal is raised as Refusal; any other error, a grpc.RpcError, means that the answer is missing."""

    def __init__(self, stubs, lease, context):
        self._stubs, self._context = stubs, context
        self._metadata = [(LEASE, lease)]
        self._metadata += [(k, v) for k, v in context.invocation_metadata() if k in ("traceparent", "tracestate")]
        self.open = 0  # commit points without a definite answer
        self.landed = None  # version and location of the one that landed

    def _call(self, name, request, read=lambda reply: reply):
        try:
            return read(getattr(self._stubs, name)(request, metadata=self._metadata, timeout=self._context.time_remaining()))
        except grpc.RpcError as e:
            raise refusal_in(e) or e

    def location(self):
        """The URI of the table's directory: where it is, or where it would be created."""
        replies = self._call("CatalogLoadTable", host_pb2.LoadTableRequest(), list)
        if replies[0].missing:
            return replies[0].default_location
        return json.loads(b"".join(r.metadata for r in replies))["location"]

    def get(self, uri):
        """A whole object, bytes. A missing one is Refusal(NOT_FOUND)."""
        return self._call("StorageGet", host_pb2.GetRequest(uri=uri), lambda replies: b"".join(r.data for r in replies))

    def get_json(self, uri, into=None):
        """An object as JSON: a dict, or, with into, that message filled."""
        body = self.get(uri)
        return json_format.Parse(body, into) if into is not None else json.loads(body)

    def list(self, prefix):
        """What lies below a directory of the table: uri, size, mtime_millis. In no promised order."""
        request = host_pb2.ListRequest(prefix=prefix)
        return self._call("StorageList", request, lambda replies: [o for r in replies for o in r.objects])

    def put(self, uri, body, version=None, parent="", markers=()):
        """Create an object; an existing one is Refusal(EXISTS). With a version the object is a commit point, and an existing one is Refusal(CONFLICT)."""
        first = host_pb2.PutIfAbsentRequest(uri=uri, data=body[:CHUNK])
        rest = (host_pb2.PutIfAbsentRequest(data=body[i : i + CHUNK]) for i in range(CHUNK, len(body), CHUNK))
        if version is None:
            self._call("StoragePutIfAbsent", iter([first, *rest]))
            return
        first.commit_point.CopyFrom(host_pb2.CommitPoint(version=version, parent=parent, markers=markers))
        self.open += 1
        try:
            self._call("StoragePutIfAbsent", iter([first, *rest]))
        except Refusal as e:
            if e.kind == ALREADY:
                self.landed = (e.version, e.location)
            elif e.kind != UNKNOWN:
                self.open -= 1
            raise
        self.landed = (version, uri)

    def put_json(self, uri, value, **point):
        """put of a message or of anything that the json module takes."""
        text = json_format.MessageToJson(value, indent=None) if isinstance(value, Message) else json.dumps(value)
        self.put(uri, text.encode(), **point)

    def secret(self, name):
        """A secret that the operator listed for this sink, bytes."""
        return self._call("SecretsGetSecret", host_pb2.GetSecretRequest(name=name)).value

    def progress(self, phase, fraction):
        """Tell the user what the call is doing; fraction is 0 to 1."""
        self._call("ProgressUpdate", host_pb2.UpdateRequest(phase=phase, fraction=fraction))


class Manifest:
    """The data files of one task: header, files, replaced."""

    def __init__(self, header):
        self.header, self.files, self.replaced = header, [], []


class Manifests:
    """The task manifests of a Stage call, which must be read to their end: `for manifest in manifests`. A damaged one raises Damaged."""

    def __init__(self, requests):
        self._requests, self._done, self.totals = requests, False, sink_pb2.Totals()

    def _next(self):
        request = next(self._requests, None)
        if request is None:
            raise Damaged("the manifests end without a trailer")
        return request

    def __iter__(self):
        count = 0
        while not self._done:
            request = self._next()
            part = request.WhichOneof("part")
            if part == "trailer":
                if request.trailer.manifests != count or not same(request.trailer.totals, self.totals):
                    raise Damaged(f"read {count} manifests with {line(self.totals)}, the trailer says {line(request.trailer)}")
                self._done = True
            elif part == "manifest" and request.manifest.WhichOneof("part") == "header":
                yield self._read(Manifest(request.manifest.header))
                count += 1
            else:
                raise Damaged(f"manifest {count} does not open with a header")

    def _read(self, manifest):
        digest, sums = hashlib.sha256(), sink_pb2.Totals()
        while True:
            chunk = self._next().manifest
            if chunk.WhichOneof("part") == "files":
                digest.update(chunk.files)
                try:
                    batch = plan_pb2.DataFiles.FromString(chunk.files)
                except DecodeError as e:
                    raise Damaged(f"task {manifest.header.task}: {e}") from None
                manifest.files += batch.files
                manifest.replaced += batch.replaced
                continue
            if chunk.WhichOneof("part") != "trailer":
                raise Damaged(f"task {manifest.header.task}: want files or a trailer")
            sums.files = len(manifest.files)
            sums.rows = sum(f.record_count for f in manifest.files)
            sums.bytes = sum(f.size_bytes for f in manifest.files)
            if chunk.trailer.sha256 != digest.digest() or not same(chunk.trailer, sums):
                raise Damaged(f"task {manifest.header.task}: read {line(sums)} with sha256 {digest.hexdigest()}, the trailer says {line(chunk.trailer)}")
            self.totals.files += sums.files
            self.totals.rows += sums.rows
            self.totals.bytes += sums.bytes
            return manifest

    def finish(self):
        """Raise unless everything was read, and right."""
        if not self._done:
            for _ in self:
                raise Damaged("the sink returned before it had read every manifest")


def same(a, b):
    return (a.files, a.rows, a.bytes) == (b.files, b.rows, b.bytes)


def line(message):
    return " ".join(str(message).split())


def number_fields(schema):
    """Give every field of a new table, nested ones included, the id by which readers find it."""

    def number(fields, last):
        for f in fields:
            last += 1
            f.id = last
            last = number(f.type.fields, last)
        return last

    number(schema.fields, 0)


def stage_files(manifests):
    """stage for a sink that keeps nothing of a data file but its URI, size and record count: references hold those, and no object is needed."""
    files = [{"uri": f.path, "size_bytes": f.size_bytes, "record_count": f.record_count} for m in manifests for f in m.files]
    parts = (files[i : i + FILES_IN_REF] for i in range(0, len(files), FILES_IN_REF))
    return sink_pb2.StageResponse(refs=[sink_pb2.StagedRef(data=gzip.compress(json.dumps(part).encode(), mtime=0)) for part in parts])


def staged_files(units):
    """The files, dicts, and the markers of units that stage_files staged."""
    files = [f for unit in units for ref in unit.refs for f in json.loads(gzip.decompress(ref.data))]
    return files, [unit.marker for unit in units]
