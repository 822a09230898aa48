"""The base class of sinks, and the edge at which its answers and errors become those of signet.sink.v1."""

import logging

import grpc
from google.protobuf import any_pb2, message_factory

from . import host_pb2, sink_pb2, wire
from .host import ALREADY, CONFLICT, DETAILS, EXISTS, FENCED, NOT_FOUND, PERMANENT, RETRYABLE, UNKNOWN, Damaged, Host, Manifests, Refusal

log = logging.getLogger("signet_sink")


class Sink:
    """Five methods every sink has. Those after them are optional: a sink has the capability of each that it overrides."""

    def describe(self):
        """A sink_pb2.DescribeResponse: name, version, commit point, patterns of the objects that the sink creates. It depends on nothing outside."""
        raise NotImplementedError

    def prepare_write(self, host, request):
        """Load the table and say how its data files have to look. Changes nothing; may be called any number of times."""
        raise NotImplementedError

    def stage(self, host, header, manifests):
        """Turn task manifests into references that commit understands. May be called again with the same ones; only objects with fresh names are written."""
        raise NotImplementedError

    def commit(self, host, request):
        """Make all units visible at once or none. Before every attempt it looks for their markers in the table, and answers ALREADY_COMMITTED where it finds
        them; after a Refusal(CONFLICT) it reloads and tries again, at most request.max_attempts times. Any other error is left to its caller."""
        raise NotImplementedError

    def lookup(self, host, request):
        """Tell whether a marker is in the table, and at which version it came in."""
        raise NotImplementedError

    def create_table(self, host, request): ...
    def drop_table(self, host, request): ...
    def describe_table(self, host, request): ...
    def plan_scan(self, host, request): ...  # yields messages: the first carries everything but the files, each at most 1,000 of them
    def alter_table(self, host, request): ...
    def history(self, host, request): ...  # yields
    def maintain(self, host, request): ...  # yields
    def abort(self, host, request): ...


OPTIONAL = ("create_table", "drop_table", "describe_table", "plan_scan", "alter_table", "history", "maintain", "abort")

CODES = {
    CONFLICT: grpc.StatusCode.ABORTED, UNKNOWN: grpc.StatusCode.UNKNOWN, PERMANENT: grpc.StatusCode.FAILED_PRECONDITION,
    ALREADY: grpc.StatusCode.ALREADY_EXISTS, FENCED: grpc.StatusCode.FAILED_PRECONDITION, RETRYABLE: grpc.StatusCode.UNAVAILABLE,
    NOT_FOUND: grpc.StatusCode.NOT_FOUND, EXISTS: grpc.StatusCode.ALREADY_EXISTS,
}

# Outcomes of a refusal while nothing is pending.
OUTCOMES = {
    CONFLICT: sink_pb2.OUTCOME_CONFLICT, UNKNOWN: sink_pb2.OUTCOME_RETRYABLE, PERMANENT: sink_pb2.OUTCOME_PERMANENT,
    ALREADY: sink_pb2.OUTCOME_ALREADY_COMMITTED, FENCED: sink_pb2.OUTCOME_PERMANENT, RETRYABLE: sink_pb2.OUTCOME_RETRYABLE,
    NOT_FOUND: sink_pb2.OUTCOME_PERMANENT, EXISTS: sink_pb2.OUTCOME_PERMANENT,
}

TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED, grpc.StatusCode.RESOURCE_EXHAUSTED)


def has(sink, name):
    return getattr(type(sink), name) is not getattr(Sink, name)


def described(sink):
    """The sink's own description, with the capabilities that its methods are."""
    d = sink.describe()
    if not d.name or not d.commit_point:
        raise ValueError("describe must give a name and a commit point")
    ids = {sink_pb2.Capability.Value("CAPABILITY_" + name.upper()) for name in OPTIONAL if has(sink, name)}
    d.capabilities[:] = sorted(ids | set(d.capabilities))
    return d


def snake(name):
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def outcome(host, response, error):
    """The answer to Commit, which is always an outcome: an error after a commit point without an answer is an unknown one."""
    good = (sink_pb2.OUTCOME_COMMITTED, sink_pb2.OUTCOME_ALREADY_COMMITTED)
    if error is None and response is not None and response.outcome:
        if response.outcome in good or not (host.landed or host.open):
            return response
        error = RuntimeError("the sink answered otherwise: " + response.message)
    error = error or RuntimeError("the sink returned no outcome; this is a defect of the sink")
    out = sink_pb2.CommitResponse(message=str(error) or repr(error))
    if host.landed:
        out.outcome, (out.version, out.location) = sink_pb2.OUTCOME_COMMITTED, host.landed
        out.message = "committed; afterwards the sink failed: " + out.message
    elif host.open:
        out.outcome = sink_pb2.OUTCOME_UNKNOWN
    elif isinstance(error, Refusal):
        out.outcome, out.version, out.location = OUTCOMES[error.kind], error.version, error.location
    elif isinstance(error, grpc.RpcError) and error.code() in TRANSIENT:
        out.outcome = sink_pb2.OUTCOME_RETRYABLE
    else:
        out.outcome = sink_pb2.OUTCOME_PERMANENT
    return out


def fail(context, call, error):
    """End a call with an error."""
    if isinstance(error, Refusal):
        detail = any_pb2.Any()
        detail.Pack(host_pb2.Refusal(kind=error.kind, message=error.message, version=error.version, location=error.location))
        status = wire.Status(code=CODES[error.kind].value[0], message=error.message, details=[detail])
        context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
        context.abort(CODES[error.kind], error.message)
    if isinstance(error, Damaged):
        context.abort(grpc.StatusCode.DATA_LOSS, f"damaged manifest: {error}")
    if isinstance(error, grpc.RpcError):
        context.abort(error.code(), error.details())
    log.error("the sink raised in %s", call, exc_info=error)
    context.abort(grpc.StatusCode.INTERNAL, f"the sink raised in {call}: {error!r}; this is a defect of the sink, its stack is in the log")


class Service:
    """signet.sink.v1 over a sink. connect gives the host's Stubs for the number of a connection."""

    def __init__(self, sink, connect):
        self.sink, self.connect, self.stubs = sink, connect, None

    def handlers(self):
        service = sink_pb2.DESCRIPTOR.services_by_name["Sink"]
        table = {}
        for m in service.methods:
            kind = ("stream_" if m.client_streaming else "unary_") + ("stream" if m.server_streaming else "unary")
            request = message_factory.GetMessageClass(m.input_type)
            table[m.name] = getattr(grpc, kind + "_rpc_method_handler")(
                self.behaviour(m.name, m.server_streaming), request_deserializer=request.FromString, response_serializer=lambda r: r.SerializeToString()
            )
        return grpc.method_handlers_generic_handler(service.full_name, table)

    def behaviour(self, name, streams):
        if name in ("Describe", "Stage", "Commit"):
            return getattr(self, name.lower())
        method = snake(name)
        if method in OPTIONAL and not has(self.sink, method):
            return lambda request, context: context.abort(grpc.StatusCode.UNIMPLEMENTED, f"method {name} not implemented")
        call = getattr(self.sink, method)

        def unary(request, context):
            try:
                return call(Host(self.stubs, request.lease, context), request)
            except Exception as e:
                fail(context, name, e)

        def stream(request, context):
            try:
                yield from call(Host(self.stubs, request.lease, context), request)
            except Exception as e:
                fail(context, name, e)

        return stream if streams else unary

    def describe(self, request, context):
        try:
            self.stubs = self.stubs or self.connect(request.host_connection)
            return described(self.sink)
        except TimeoutError as e:
            context.abort(grpc.StatusCode.UNAVAILABLE, f"connect to the host's services: {e}")

    def stage(self, requests, context):
        first = next(requests, None)
        try:
            if first is None or first.WhichOneof("part") != "header":
                raise Damaged("it does not open with a header")
            manifests = Manifests(requests)
            response = self.sink.stage(Host(self.stubs, first.header.lease, context), first.header, manifests)
            manifests.finish()
            response.totals.CopyFrom(manifests.totals)
            return response
        except Exception as e:
            fail(context, "Stage", e)

    def commit(self, request, context):
        host, response, error = Host(self.stubs, request.lease, context), None, None
        try:
            response = self.sink.commit(host, request)
        except Exception as e:
            error = e
            if not isinstance(e, (Refusal, grpc.RpcError)):
                log.error("the sink raised in Commit", exc_info=e)
        return outcome(host, response, error)
