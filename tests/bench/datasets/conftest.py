import pickle
import struct
from typing import ClassVar

import pytest


class _Python2(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings, which is what the published files hold."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def _save_bytes(self, value):
        self.write(pickle.BINSTRING + struct.pack("<i", len(value)) + value)
        self.memoize(value)

    def save(self, value, *args, **kwargs):
        if type(value) is str:
            value = value.encode("latin1")
        return super().save(value, *args, **kwargs)

    dispatch[bytes] = _save_bytes


def _dump(content, path):
    with path.open("wb") as file:
        _Python2(file, protocol=2).dump(content)
    # Python 2 had numpy 1.
    path.write_bytes(path.read_bytes().replace(b"numpy._core.", b"numpy.core."))


@pytest.fixture(scope="session")
def dump_python2():
    """Write a dictionary to a path, as Python 2 and numpy 1 did."""
    return _dump
