"""Blocks on a Dask cluster: it runs them, runs those again that a lost worker had, and adds up what comes of them."""

import contextlib
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from engram.cluster.blocks import BLOCK, Block, Setting, Summary, combine, cut_blocks, summarise
from engram.learners.base import Label

AT_ONCE = 4  # results that wait to be added to the sum of their range: however many blocks there are, no more do
AHEAD = 4  # blocks submitted for every worker: enough that none waits, few enough that lists of paths stay small
PATIENCE = 10.0  # seconds for a scheduler to answer
FAILURES = 20  # workers that may die over one block before it is held to be the block's fault
Told = Callable[[int], None]  # how many pictures are done


@dataclass(frozen=True)
class Outcome:
    """What came of all blocks, range by range, and what went wrong on the way: workers lost, blocks run again."""

    ranges: list[Summary]
    workers_lost: int
    blocks_retried: int


@dataclass(frozen=True)
class Cluster:
    """Workers that make class sums of pictures: the address of a Dask scheduler, `local` or `local:N`."""

    address: str
    block: int = BLOCK  # pictures that a worker takes at a time

    def add_up(self, pictures: Mapping[Label, Sequence[str]], setting: Setting, told: Told) -> Outcome:
        """Make sums of these pictures. What is done is kept in the setting's folder, where workers can write there."""
        with connect(self.address) as client:
            if setting.folder is not None:
                setting.folder.mkdir(exist_ok=True)
            return run_blocks(client, cut_blocks(pictures, setting, self.block), setting, told)


@contextlib.contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address`; `local` and `local:N` start processes on this machine for the while."""
    if find_spec("distributed") is None:
        raise ValueError("Dask is not installed; pip install 'engram-learn[dask]'")
    from distributed import Client, LocalCluster

    kind, _, number = address.partition(":")
    if kind == "local":
        if number and not (number.isascii() and number.isdigit() and int(number)):
            raise ValueError(f"--dask takes the address of a scheduler, local or local:N, not {address!r}")
        processes = LocalCluster(
            n_workers=int(number) if number else None,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs="CRITICAL",
            scheduler_kwargs={"allowed_failures": FAILURES},
        )
        with processes, Client(processes, set_as_default=False) as client:
            yield client
        return
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address}; start one with dask scheduler, or give --dask local"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ValueError(f"the Dask scheduler at {address} has no workers; start some with dask worker") from None
        yield client


def run_blocks(
    client: Any, ranges: Iterable[Sequence[Block]], setting: Setting, told: Told = lambda pictures: None
) -> Outcome:
    """Summarise all blocks and add up those of each range, a few at a time.

    The lists of pictures are taken as they are needed, so they need not all be in memory. Results stay with the workers
    until a range is complete.
    """
    shared = _share(client, setting)
    events_before, window, finished = len(client.get_events("all")), _Window(client, told), []
    for blocks in ranges:
        waiting: list[Any] = []  # beginning with the sum of those before
        for block in blocks:
            window.wait_for_room()
            future = client.submit(summarise, block, shared, key=f"engram-block-{block.key}")
            window.add(future, len(block.images))
            waiting.append(future)
            if len(waiting) > AT_ONCE:
                waiting = [client.submit(combine, waiting, pure=False)]
        if waiting:
            finished.append(waiting[0] if len(waiting) == 1 else client.submit(combine, waiting, pure=False))
    window.wait_for_all()
    summaries = client.gather(finished)
    return Outcome(summaries, *_losses(client.get_events("all")[events_before:]))


def _share(client: Any, value: object) -> Any:
    """What all workers need, sent once. As the result of a task, it is made again where a lost worker had it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph")  # the head of a network, perhaps
        return client.submit(pickle.loads, pickle.dumps(value), pure=False)


class _Window:
    """Blocks that were submitted and are not done: never more than the workers need to be busy."""

    def __init__(self, client: Any, told: Told) -> None:
        from distributed import as_completed

        self.client, self.told, self.done = client, told, 0
        self.sizes: dict[str, int] = {}
        self.completed = as_completed([], loop=client.loop)

    def add(self, future: Any, pictures: int) -> None:
        self.sizes[future.key] = pictures
        self.completed.add(future)

    def wait_for_room(self) -> None:
        while len(self.sizes) >= AHEAD * max(1, len(self.client.nthreads())):
            self._take_one()

    def wait_for_all(self) -> None:
        while self.sizes:
            self._take_one()

    def _take_one(self) -> None:
        future = next(self.completed)
        if (error := future.exception()) is not None:
            raise error if isinstance(error, ValueError) else ValueError(f"a block failed on its worker: {error!r}")
        self.done += self.sizes.pop(future.key)
        self.told(self.done)


def _losses(events: Sequence[tuple[float, Any]]) -> tuple[int, int]:
    """Workers that were lost, and how many blocks they were at, or had the results of."""
    lost = [e for _, e in events if isinstance(e, dict) and e.get("action") == "remove-worker" and not e["expected"]]
    keys = [key for event in lost for kind in ("processing-tasks", "lost-computed-tasks") for key in event[kind]]
    return len(lost), sum(str(key).startswith("engram-block-") for key in keys)
