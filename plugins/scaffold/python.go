package scaffold

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"

	hostv1 "github.com/signet-io/signet/api/host/v1"
	planv1 "github.com/signet-io/signet/api/plan/v1"
	sinkv1 "github.com/signet-io/signet/api/sink/v1"
)

// pythonProtos writes the messages of the protocols as modules of signet_sink. They come from the descriptors of this very program, so that a
// project has the protocol of the Signet that made it, without a compiler of protos.
func pythonProtos(dir string) error {
	for _, file := range []protoreflect.FileDescriptor{planv1.File_plan_v1_plan_proto, sinkv1.File_sink_v1_sink_proto, hostv1.File_host_v1_host_proto} {
		text, err := pythonModule(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "signet_sink", moduleOf(file.Path())+".py"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moduleOf is the Python module of a proto: plan_pb2 of plan/v1/plan.proto.
func moduleOf(proto string) string { return strings.TrimSuffix(path.Base(proto), ".proto") + "_pb2" }

// pythonModule is what protoc's own generator makes of a file, without the hints that speed up imports.
func pythonModule(file protoreflect.FileDescriptor) (string, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Generated from api/%s of Signet, where the comments are. Do not edit.\n\n", file.Path())
	b.WriteString("from google.protobuf import descriptor_pool\nfrom google.protobuf.internal import builder\n\n")
	for i := range file.Imports().Len() {
		fmt.Fprintf(&b, "from . import %s  # noqa: F401, its messages are known before these\n\n", moduleOf(file.Imports().Get(i).Path()))
	}
	b.WriteString("DESCRIPTOR = descriptor_pool.Default().AddSerializedFile(\n")
	for part := range slices.Chunk(raw, 96) {
		fmt.Fprintf(&b, "    b'%s'\n", pythonBytes(part))
	}
	b.WriteString(")\nbuilder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())\nbuilder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())\n")
	return b.String(), nil
}

// pythonBytes is the inside of a Python bytes literal in single quotes.
func pythonBytes(raw []byte) string {
	var b strings.Builder
	for _, c := range raw {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c >= ' ' && c <= '~':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
