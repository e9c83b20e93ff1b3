"""Many jobs on one machine: a pool of processes that each load the data once, and answers in the order they come."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from typing import Any, TypeVar

import torch

Job = TypeVar("Job")
Answer = TypeVar("Answer")


def run_jobs(
    function: Callable[[Job], Answer],
    jobs: Sequence[Job],
    workers: int,
    initializer: Callable[..., None],
    initargs: tuple[Any, ...] = (),
    limit_seconds: float = float("inf"),
) -> Iterator[tuple[Job, Answer | Exception]]:
    """Every job and what `function` made of it, or what it failed with, as they finish; the first jobs start first.

    `initializer(*initargs)` runs once in every worker, which is where data is loaded. Processes are spawned: CUDA does
    not survive a fork. After `limit_seconds` no answer is waited for and the workers are ended, whatever they are at.
    """
    # What a method keeps grows with every class and does not fit where the last task's was: FeCAM held 64 GB for 2.
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")  # inherited by the workers
    deadline = time.monotonic() + limit_seconds
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, spawn, initializer=_start_worker, initargs=(initializer, initargs))
    try:
        waiting: dict[Future[Answer], Job] = {pool.submit(function, job): job for job in jobs}
        while waiting and (left := deadline - time.monotonic()) > 0:
            done = wait(waiting, None if left == float("inf") else left, FIRST_COMPLETED).done
            for future in done:
                error = future.exception()
                if isinstance(error, BrokenExecutor):
                    raise error  # a worker was killed, or its data could not be loaded: nothing more will come
                yield waiting.pop(future), error if isinstance(error, Exception) else future.result()
    finally:
        running = list((pool._processes or {}).values())  # the pool offers no way to end them before Python 3.14
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()


def _start_worker(initializer: Callable[..., None], initargs: tuple[Any, ...]) -> None:
    """Many workers share the cores: one thread each, also for compiling."""
    torch.set_num_threads(1)
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    initializer(*initargs)
