"""Files that are read and written without the package onnx, checked with it."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from gatewayd.vectors.models import onnx_file

ARRAYS = [
    np.array([[1, -2], [3, 4]], np.int8),
    np.array([0.5, -1e9], np.float32),
    np.array([2**40, -1]),
    np.array([7, -7], np.int32),
    np.array([True, False]),
]


def test_what_is_written_is_what_the_package_writes(tmp_path: Path) -> None:
    node = onnx_file.make_node("LayerNormalization", ["x", "c0"], ["y"], "n0", "", axis=-1, epsilon=0.5)
    other = onnx_file.make_node("QAttention", ["x"], ["z"], "n1", "com.microsoft", num_heads=2)
    value = onnx_file.make_value("x", onnx_file.INT64, "batch", "tokens")
    result = onnx_file.make_value("y", onnx_file.FLOAT, "batch", 8)
    constant = onnx_file.make_tensor(ARRAYS[0], "c0")
    graph = onnx_file.make_graph([node, other], [value], result, [constant])
    onnx_file.write_model(graph, {"": 17, "com.microsoft": 1}, 8, tmp_path / "own.onnx")
    wanted = helper.make_graph(
        [
            helper.make_node("LayerNormalization", ["x", "c0"], ["y"], name="n0", axis=-1, epsilon=0.5),
            helper.make_node("QAttention", ["x"], ["z"], name="n1", domain="com.microsoft", num_heads=2),
        ],
        "encoder",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT64, ["batch", "tokens"])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 8])],
        [numpy_helper.from_array(ARRAYS[0], "c0")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    assert onnx.load(tmp_path / "own.onnx") == helper.make_model(wanted, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.dtype))
def test_tensors_are_read_in_either_form(tmp_path: Path, array: np.ndarray) -> None:
    raw = numpy_helper.from_array(array, "raw")
    plain = helper.make_tensor("plain", raw.data_type, array.shape, array.ravel().tolist())
    onnx.save(helper.make_model(helper.make_graph([], "g", [], [], [raw, plain])), tmp_path / "m.onnx")
    for tensor in onnx_file.read_graph(tmp_path / "m.onnx").initializer:
        read = onnx_file.read_tensor(tensor)
        assert read.dtype == array.dtype
        assert np.array_equal(read, array)


def test_a_file_that_is_none_and_a_type_that_is_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match=r"m\.onnx is not an ONNX model"):
        onnx_file.read_graph(tmp_path / "m.onnx")
    with pytest.raises(KeyError):
        onnx_file.read_tensor(numpy_helper.from_array(np.array([1.0]), "x"))
    with pytest.raises(KeyError):
        onnx_file.make_tensor(np.array([1.0]), "x")
