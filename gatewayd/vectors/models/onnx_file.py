"""Reader and writer of ONNX files with protobuf alone: the package `onnx` would take 33 MB.

`MESSAGES` is the part of onnx.proto (version 3) that encoders need; other fields of a file are ignored.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

PACKAGE: Final = "gatewayd.onnx"
MESSAGES: Final = {
    "ModelProto": "ir_version=1:int64 graph=7:GraphProto opset_import=8:OperatorSetIdProto*",
    "OperatorSetIdProto": "domain=1:string version=2:int64",
    "GraphProto": "node=1:NodeProto* name=2:string initializer=5:TensorProto* input=11:ValueInfoProto* "
    "output=12:ValueInfoProto*",
    "NodeProto": "input=1:string* output=2:string* name=3:string op_type=4:string "
    "attribute=5:AttributeProto* domain=7:string",
    "AttributeProto": "name=1:string f=2:float i=3:int64 type=20:int32",
    "TensorProto": "dims=1:int64* data_type=2:int32 float_data=4:float* int32_data=5:int32* "
    "int64_data=7:int64* name=8:string raw_data=9:bytes",
    "ValueInfoProto": "name=1:string type=2:TypeProto",
    "TypeProto": "tensor_type=1:TensorTypeProto",
    "TensorTypeProto": "elem_type=1:int32 shape=2:ShapeProto",
    "ShapeProto": "dim=1:DimensionProto*",
    "DimensionProto": "dim_value=1:int64 dim_param=2:string",
}
"""The fields of each message, with number and type; a star means any number of values."""

SCALARS: Final = {
    "float": descriptor_pb2.FieldDescriptorProto.TYPE_FLOAT,
    "int64": descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
    "int32": descriptor_pb2.FieldDescriptorProto.TYPE_INT32,
    "string": descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    "bytes": descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
}
FLOAT, INT8, INT32, INT64, BOOL = 1, 3, 6, 7, 9
"""Types of elements (TensorProto.DataType)."""

ELEMENTS: Final = {FLOAT: np.float32, INT8: np.int8, INT32: np.int32, INT64: np.int64, BOOL: np.bool_}
VALUES: Final = {FLOAT: "float_data", INT64: "int64_data"}
"""Field with the values of a tensor without raw data; `int32_data` for the other types."""

FLOAT_ATTRIBUTE, INT_ATTRIBUTE = 1, 2


def _field(text: str) -> descriptor_pb2.FieldDescriptorProto:
    name, _, about = text.partition("=")
    number, _, kind = about.partition(":")
    field = descriptor_pb2.FieldDescriptorProto(name=name, number=int(number))
    single = kind.removesuffix("*")
    field.label = field.LABEL_OPTIONAL if single == kind else field.LABEL_REPEATED
    if single in SCALARS:
        field.type = SCALARS[single]
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{PACKAGE}.{single}"
    return field


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="onnx.proto", package=PACKAGE, syntax="proto2")
    for name, fields in MESSAGES.items():
        file.message_type.add(name=name, field=[_field(text) for text in fields.split()])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    messages = {name: pool.FindMessageTypeByName(f"{PACKAGE}.{name}") for name in MESSAGES}
    return {name: message_factory.GetMessageClass(message) for name, message in messages.items()}


CLASSES: Final = _classes()


def read_graph(path: Path) -> Any:
    """Return the GraphProto of a file; raises ValueError if it is not an ONNX model."""
    model = CLASSES["ModelProto"]()
    try:
        model.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise ValueError(f"{path.name} is not an ONNX model") from error
    return model.graph


def write_model(graph: Any, opsets: Mapping[str, int], ir_version: int, path: Path) -> None:
    """Write a graph as a file."""
    imports = [{"domain": domain, "version": version} for domain, version in opsets.items()]
    model = CLASSES["ModelProto"](ir_version=ir_version, graph=graph, opset_import=imports)
    path.write_bytes(model.SerializeToString())


def make_graph(nodes: Sequence[Any], inputs: Sequence[Any], output: Any, constants: Sequence[Any]) -> Any:
    """Return a GraphProto."""
    return CLASSES["GraphProto"](
        name="encoder", node=nodes, input=inputs, output=[output], initializer=constants
    )


def make_node(
    operator: str, inputs: Sequence[str], outputs: Sequence[str], name: str, domain: str, **options: float
) -> Any:
    """Return a NodeProto; options are attributes, whole numbers or floats."""
    attributes = [
        {"name": key, "type": FLOAT_ATTRIBUTE, "f": value}
        if isinstance(value, float)
        else {"name": key, "type": INT_ATTRIBUTE, "i": value}
        for key, value in options.items()
    ]
    return CLASSES["NodeProto"](
        op_type=operator, input=inputs, output=outputs, name=name, domain=domain or None, attribute=attributes
    )


def make_value(name: str, element: int, *dimensions: str | int) -> Any:
    """Return a ValueInfoProto; dimensions are numbers, or names of those that vary."""
    dims = [{"dim_value" if isinstance(item, int) else "dim_param": item} for item in dimensions]
    return CLASSES["ValueInfoProto"](
        name=name, type={"tensor_type": {"elem_type": element, "shape": {"dim": dims}}}
    )


def make_tensor(array: NDArray[Any], name: str) -> Any:
    """Return a TensorProto; raises KeyError for an unsupported element type."""
    element = {np.dtype(kind): number for number, kind in ELEMENTS.items()}[array.dtype]
    little = array.astype(array.dtype.newbyteorder("<"))
    return CLASSES["TensorProto"](name=name, dims=array.shape, data_type=element, raw_data=little.tobytes())


def read_tensor(tensor: Any) -> NDArray[Any]:
    """Return the values of a TensorProto; raises KeyError for an unsupported element type."""
    kind = np.dtype(ELEMENTS[tensor.data_type])
    if tensor.raw_data:
        flat = np.frombuffer(tensor.raw_data, kind.newbyteorder("<")).astype(kind)
    else:
        flat = np.array(getattr(tensor, VALUES.get(tensor.data_type, "int32_data")), kind)
    return flat.reshape(tuple(tensor.dims))
