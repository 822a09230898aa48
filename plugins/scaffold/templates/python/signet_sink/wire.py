"""Two small messages that are not Signet's: what go-plugin's broker says, and how gRPC packs the details of an error."""

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto


def messages(**fields):
    file = descriptor_pb2.FileDescriptorProto(name="signet_sink/wire.proto", package="signet_sink", syntax="proto3")
    file.dependency.append(any_pb2.DESCRIPTOR.name)
    for name, parts in fields.items():
        message = file.message_type.add(name=name)
        for number, (field, kind, label, of) in enumerate(parts, 1):
            message.field.add(name=field, number=number, type=kind, label=label, type_name=of)
    added = descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
    return [message_factory.GetMessageClass(added.message_types_by_name[name]) for name in fields]


# plugin.ConnInfo of github.com/hashicorp/go-plugin, and google.rpc.Status.
ConnInfo, Status = messages(
    ConnInfo=[
        ("service_id", Field.TYPE_UINT32, Field.LABEL_OPTIONAL, None),
        ("network", Field.TYPE_STRING, Field.LABEL_OPTIONAL, None),
        ("address", Field.TYPE_STRING, Field.LABEL_OPTIONAL, None),
    ],
    Status=[
        ("code", Field.TYPE_INT32, Field.LABEL_OPTIONAL, None),
        ("message", Field.TYPE_STRING, Field.LABEL_OPTIONAL, None),
        ("details", Field.TYPE_MESSAGE, Field.LABEL_REPEATED, ".google.protobuf.Any"),
    ],
)
