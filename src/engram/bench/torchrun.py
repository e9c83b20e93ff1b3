"""A benchmark on processes that `torchrun` started: they share the training; the first one reads, writes and prints."""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist

T = TypeVar("T")


@contextlib.contextmanager
def joined_processes() -> Iterator[bool]:
    """Join the others, if `torchrun` started this process: gloo on CPUs, NCCL on GPUs. Whether it is the first."""
    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield True
        return
    own_gpu = int(os.environ["LOCAL_RANK"])
    if own_gpu < torch.cuda.device_count():
        torch.cuda.set_device(own_gpu)
    dist.init_process_group()
    try:
        yield is_first()
    finally:
        dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process is the one that speaks for all; one alone is."""
    return not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0


def from_first(read: Callable[[], T]) -> T:
    """What the first process reads, in all of them: files may change, or be elsewhere, before another one looks.

    An error reaches all, too, so that none waits for one that has ended.
    """
    if not (dist.is_available() and dist.is_initialized()):
        return read()
    found: list[Any] = [None, None]
    if is_first():
        try:
            found[0] = read()
        except Exception as error:
            found[1] = error
    dist.broadcast_object_list(found)
    if found[1] is not None:
        raise found[1]
    return cast(T, found[0])
