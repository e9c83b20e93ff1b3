"""Where to compute."""

import contextlib
from collections.abc import Iterator

import torch


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """`auto` is CUDA if there is one, else the CPU; anything else is torch's own name for a device."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise ValueError(f"unknown device {device!r}; use 'auto', 'cpu' or 'cuda'") from None
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' was asked for, but torch finds no CUDA device; use 'auto' or 'cpu'")
    return resolved


@contextlib.contextmanager
def threads_for(n_parameters: int, device: torch.device) -> Iterator[None]:
    """Train a small network with one thread: a second gains it nothing, and on a busy machine waits for its turn."""
    before = torch.get_num_threads()
    if device.type == "cpu" and n_parameters < 1_000_000:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
