"""The token that lets a browser or a program in, and the file that keeps it from one start to the next."""

import contextlib
import os
import re
import secrets
import tempfile
from pathlib import Path

_SHORTEST = 16


def new_token() -> str:
    """A token nobody can guess."""
    return secrets.token_urlsafe(24)


def kept_token(path: Path) -> str:
    """The token in this file, which is made if it is not there; ValueError if it cannot be used."""
    try:
        if not path.exists():
            _write_new(path, new_token())
        token = path.read_text(encoding="ascii").strip()
        others = path.stat().st_mode & 0o077 if os.name == "posix" else 0
    except UnicodeDecodeError:
        token, others = "", 0
    except OSError as error:
        raise ValueError(f"cannot use {path} for the token: {error.strerror}") from None
    if others:
        raise ValueError(f"others on this machine may read {path}, which holds the token; chmod 600 {path}")
    if not re.fullmatch(rf"[\w.~-]{{{_SHORTEST},}}", token, re.ASCII):
        raise ValueError(
            f"{path} holds no token: one line of at least {_SHORTEST} letters, digits, - and _; "
            "without the file, one is made"
        )
    return token


def _write_new(path: Path, token: str) -> None:
    """Whole or not at all, for the owner only; whoever makes the same file at the same time may win."""
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # which nobody else may read
    try:
        with os.fdopen(handle, "w") as file:
            file.write(token + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)
