"""The process: what HashiCorp's go-plugin, on which Signet's host is built, expects of a plugin in another language.

The host starts the plugin with a cookie, its certificate and a directory for sockets in the environment. The plugin listens there, with a certificate of its
own that it announces in one line on standard output, and serves four small services of go-plugin beside the sink: health; a controller that stops it; the
stream of its output, which stays empty here, since the host reads standard error itself; and the broker, by which it learns where the host serves
signet.host.v1. Their messages are so small that they need no generated code.
"""

import base64
import concurrent.futures
import datetime
import json
import logging
import os
import platform
import signal
import sys
import threading

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from . import sink_pb2, wire
from .host import Stubs
from .sink import Service, described

COOKIE, COOKIE_VALUE = "SIGNET_SINK_PLUGIN", "9c1f6b1e2f7a4d0b"
CORE, PROTOCOL = 1, 1
CONNECT_WITHIN = 60  # seconds: a host that has not connected by then is gone
DRAIN_WITHIN = 30  # seconds: how long running calls may take once the plugin was told to end
PARENT_EVERY = 0.5  # seconds
MAX_MESSAGE = 16 << 20
MAX_LINE = 15 << 10
OPTIONS = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]

log = logging.getLogger("signet_sink")


def serve(sink):
    """The whole main of a plugin: serve the sink to the host that started this process. `describe` prints what it is; a person gets an explanation."""
    if sys.argv[1:] == ["describe"]:
        print(json.dumps(description(sink), indent=2))
    elif os.environ.get(COOKIE) != COOKIE_VALUE or sys.argv[1:]:
        explain(sink)
        sys.exit(2)
    else:
        Process(sink).run()


def description(sink):
    """What `describe` prints, as sinks in Go print it."""
    d = described(sink)
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "name": d.name, "version": d.version, "protocol": PROTOCOL, "summary": d.summary,
        "commit_point": sink_pb2.CommitPoint.Name(d.commit_point).removeprefix("COMMIT_POINT_").lower(),
        "capabilities": [sink_pb2.Capability.Name(c).removeprefix("CAPABILITY_").lower() for c in d.capabilities],
        "creates": list(d.creates), "commit_points": list(d.commit_points), "hints": list(d.hints),
        "platform": f"{platform.system().lower()}_{machine}",
    }


def explain(sink):
    me, d = os.path.basename(sys.argv[0]), described(sink)
    print(f'{me} is the Signet sink "{d.name}" (protocol {PROTOCOL}). It is a plugin: the scheduler starts it, it does nothing by itself.\n', file=sys.stderr)
    print(f"  {d.summary}\n\nTo see what it can do:   {me} describe", file=sys.stderr)
    print(f"To use it:               put it into the scheduler's plugin directory as signet-sink-{d.name} and lock it there (plugins.lock).", file=sys.stderr)


class JSONLines(logging.Formatter):
    """One JSON object a line, as the host parses it."""

    def format(self, record):
        text = record.getMessage() + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")
        when = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc).isoformat()
        level = {"WARNING": "warn", "CRITICAL": "error"}.get(record.levelname, record.levelname.lower())
        return json.dumps({"@level": level, "@message": text[: MAX_LINE // 2], "@timestamp": when, "logger": record.name})


def certificate():
    """A key and a certificate for this process alone, PEM, and the certificate as the handshake has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    usage = [x509.ExtendedKeyUsageOID.SERVER_AUTH, x509.ExtendedKeyUsageOID.CLIENT_AUTH]
    cert = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1)).not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    der = cert.public_bytes(serialization.Encoding.DER)
    return pem, cert.public_bytes(serialization.Encoding.PEM), base64.b64encode(der).decode().rstrip("=")


class Process:
    """The life of a plugin: from the handshake until it is told to end or its host is gone."""

    def __init__(self, sink):
        self.service = Service(sink, self.dial)
        self.stopping = threading.Event()
        self.connected = threading.Event()
        self.addresses, self.known = {}, threading.Condition()  # of the host's services, by the broker's number

    def run(self):
        announce = os.fdopen(os.dup(1), "wb", 0)
        os.dup2(2, 1)  # whatever prints by mistake must not get into the handshake
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JSONLines())
        logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
        described(self.service.sink)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to everybody in the foreground
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=32), options=OPTIONS)
        server.add_generic_rpc_handlers([self.service.handlers(), *self.own_services()])
        path = os.path.join(os.environ["PLUGIN_UNIX_SOCKET_DIR"], "sink.sock")
        self.key, self.cert, announced = certificate()
        self.host_cert = os.environ["PLUGIN_CLIENT_CERT"].encode()
        server.add_secure_port("unix:" + path, grpc.ssl_server_credentials([(self.key, self.cert)], self.host_cert, require_client_auth=True))
        server.start()
        announce.write(f"{CORE}|{PROTOCOL}|unix|{path}|grpc|{announced}\n".encode())
        announce.close()
        threading.Thread(target=self.watch, daemon=True).start()
        self.stopping.wait()
        server.stop(DRAIN_WITHIN).wait()
        logging.shutdown()
        os._exit(0)  # threads that wait for a request would keep it

    def orphaned(self, why):
        log.warning("the plugin ends: the host is gone: %s", why)
        os._exit(3)

    def watch(self):
        """End with a host that never connected, or with a parent that died."""
        parent, waited = os.getppid(), 0
        while True:
            self.stopping.wait(PARENT_EVERY)
            waited += PARENT_EVERY
            if parent > 1 and os.getppid() != parent:
                self.orphaned("the parent process has ended")
            if waited > CONNECT_WITHIN and not self.connected.is_set():
                self.orphaned("no host connected")
            if self.stopping.is_set():
                return

    def own_services(self):
        """go-plugin's, over bytes: an empty message is no bytes."""

        def shutdown(request, context):
            self.stopping.set()
            return b""

        def output(request, context):
            self.stopping.wait()
            yield from ()

        def broker(requests, context):
            self.connected.set()
            context.add_callback(lambda: self.stopping.is_set() or self.orphaned("its connection ended"))
            threading.Thread(target=self.learn, args=(requests,), daemon=True).start()
            self.stopping.wait()
            yield from ()

        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        serving = unary(lambda request, context: b"\x08\x01")
        return [
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": serving}),
            grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": unary(shutdown)}),
            grpc.method_handlers_generic_handler("plugin.GRPCStdio", {"StreamStdio": stream(output)}),
            grpc.method_handlers_generic_handler("plugin.GRPCBroker", {"StartStream": grpc.stream_stream_rpc_method_handler(broker)}),
        ]

    def learn(self, requests):
        """Remember what the broker says, for as long as it speaks."""
        try:
            for request in requests:
                info = wire.ConnInfo.FromString(request)
                with self.known:
                    self.addresses[info.service_id] = info.address
                    self.known.notify_all()
        except Exception:  # its connection ended: the callback above says so
            return

    def dial(self, number):
        """The host's services, over one connection that stays open."""
        with self.known:
            if not self.known.wait_for(lambda: number in self.addresses, timeout=10):
                raise TimeoutError(f"the host's broker never named connection {number}")
        credentials = grpc.ssl_channel_credentials(self.host_cert, self.key, self.cert)
        options = [*OPTIONS, ("grpc.ssl_target_name_override", "localhost"), ("grpc.default_authority", "localhost")]
        return Stubs(grpc.secure_channel("unix:" + self.addresses[number], credentials, options=options))
