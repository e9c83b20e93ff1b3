"""For objects that several threads share: changes take turns, and who reads sees one moment.

A change is made to a copy, whose attributes then take the place of the old ones, all at once. So a change that fails
changes nothing, and a copy taken at any time is whole. For this, attributes are replaced, never changed in place.
"""

import copy
import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Shared")


class Shared:
    """Has a lock for its changes, which is in no copy and no pickle: each of those has one of its own."""

    __slots__ = ("_turn",)
    _turn: AbstractContextManager[object]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """The lock is not in `__dict__`, which is swapped, and where scikit-learn wants nothing but parameters."""
        made = super().__new__(cls)
        made._turn = threading.RLock()
        return made

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


def change(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that changes the object: all or nothing, one at a time."""

    @functools.wraps(method)
    def all_or_nothing(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._turn:
            after = copy.copy(self)
            result = method(after, *args, **kwargs)
            self.__dict__ = vars(after)
        return result

    return all_or_nothing


def read(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """A method that reads several attributes: all of one moment."""

    @functools.wraps(method)
    def of_one_moment(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return method(copy.copy(self), *args, **kwargs)

    return of_one_moment
