from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from gatewayd.vectors.models import catalogue, minilm


def test_the_weights_of_the_package_are_found() -> None:
    encoder = minilm.read(catalogue.find_source(catalogue.MINILM))
    assert encoder.words.values.shape == (30_522, 384)
    assert encoder.positions.shape == (512, 384)
    assert len(encoder.layers) == 6
    for layer in encoder.layers:
        shapes = [part.values.shape for part in (layer.attention, layer.projection, layer.inner, layer.outer)]
        assert shapes == [(384, 1152), (384, 384), (384, 1536), (1536, 384)]
        assert layer.attention.scales.shape == layer.attention.bias.shape == (1152,)
        assert layer.attention.values.dtype == np.int8


def test_a_file_that_is_laid_out_otherwise_is_refused(tmp_path: Path) -> None:
    graph = helper.make_graph([], "other", [], [], [])
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    with pytest.raises(KeyError):
        minilm.read(tmp_path / "model.onnx")
