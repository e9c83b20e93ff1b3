"""ONNX Runtime's own wheels report what they run, and put an identifier on the disk. With engram they do neither."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["engram.encoders.onnx", "engram.files.export"])
def test_an_encoder_leaves_no_identifier_anywhere(tmp_path, module):
    # Where the environment looks like continuous integration, ONNX Runtime is silent anyway.
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "ENGRAM_WEIGHTS") if name in os.environ}
    places = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_DATA_HOME"), str(tmp_path))
    command = f"import {module}; from engram.encoders.registry import create; create('efficientnet_lite0')"
    subprocess.run([sys.executable, "-c", command], env=kept | places, check=True, timeout=100)
    assert list(tmp_path.rglob("*")) == []
