from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from gatewayd.vectors.models import catalogue, e5
from gatewayd.vectors.models.catalogue import E5_SMALL, TOKENIZER_FILE


def test_another_file_is_no_packed_model(tmp_path: Path) -> None:
    (tmp_path / "m.bin").write_bytes(b"other file")
    with pytest.raises(ValueError, match=r"m\.bin is not a packed e5 model"):
        e5.read(tmp_path / "m.bin")


def test_the_packed_model_has_the_shape_of_the_original(e5_state: Path) -> None:
    packed = e5.read(catalogue.find_source(E5_SMALL))
    assert (packed.width, packed.layers, packed.heads, packed.inner) == (384, 12, 12, 1536)
    assert len(packed.pieces) == 250_002
    positions = packed.encoder().positions
    assert positions.shape == (512, 384)
    assert np.isfinite(positions).all()


def test_the_tokenizer_cuts_words_of_many_languages(e5_state: Path) -> None:
    tokenizer = Tokenizer.from_file(str(catalogue.model_folder(e5_state, E5_SMALL) / TOKENIZER_FILE))
    encoded = tokenizer.encode("query: Hur installerar man paketet?")
    assert encoded.ids[0] == 0
    assert encoded.ids[-1] == 2
    assert 3 not in encoded.ids
    assert encoded.tokens[1:4] == ["▁que", "ry", ":"]
    # Ids of the published tokenizer.
    assert tokenizer.encode("Hello world").ids == [0, 35378, 8999, 2]
