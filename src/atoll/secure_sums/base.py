"""The secure sum: a session between contributors and receivers that shows the receivers only totals.

Every participant makes the session with the same arguments (``longest``: the most values that a round
has) and calls, in order, ``open`` once and then for each round ``contribute`` (contributors) and
``total`` (receivers). Vectors of any length are streamed in blocks. A method says in its module who
may collude without learning more than the sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from atoll import fixedpoint
from atoll.codec import Message
from atoll.errors import MessageError, PartyLeft
from atoll.fixedpoint import Limbs
from atoll.network import Network, Record
from atoll.study.address import Address
from atoll.study.model import Study
from atoll.study.tables import read_table

BLOCK_VALUES = 1 << 20


class SumOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of a method's options."""


class Cost(NamedTuple):
    """What a session is expected to cost, for ``atoll review``."""

    messages: int
    bytes_per_contributor: int
    bytes_total: int
    rounds: int


class Helper(NamedTuple):
    """A role that a method brings along, where a study names a party for it."""

    serve: Callable[[Network, Study, Record, tuple[Address, ...]], Coroutine[Any, Any, None]]
    """Takes part in all of a study's sums, given its network, the study, its record and the contributors."""
    learns: str
    messages: tuple[type[Message], ...]


class Inexact(NamedTuple):
    """Why a method does not add exactly on the grid, and which of its options makes it do so."""

    words: str
    hint: str
    option: str


class SecureSum(ABC):
    """One session for one participant.

    What others need to know of a method stands here, so that nobody asks for it by name: what reaches whom
    (``to_contributors``, ``to_receivers``, ``to_adder``, ``contributors_see``), which roles it brings
    (``has_adder``, ``helpers``), who may leave (``may_leave``), whether it is exact (``inexact``), of what it
    takes sums (``wraps``), what it can do beyond adding (``multiplies``), and its options for estimators and
    benchmarks.
    """

    to_contributors: ClassVar[tuple[type[Message], ...]]
    to_receivers: ClassVar[tuple[type[Message], ...]]
    to_adder: ClassVar[tuple[type[Message], ...]] = ()
    """What reaches whoever adds for the receiver, where the method has such a role."""
    options_type: ClassVar[type[SumOptions]] = SumOptions
    contributors_see: ClassVar[str]
    """What a contributor receives, for the disclosure."""
    hides: ClassVar[str]
    """How a contribution is hidden on its way, for the disclosure."""
    has_adder: ClassVar[bool] = False
    """Whether somebody other than the receiver adds: the first contributor, or an ``adder`` of its own."""

    helpers: ClassVar[Mapping[str, Helper]] = {}
    """Roles of its own that the method can have, by name."""
    inexact: ClassVar[Inexact | None] = None
    """None: the total is exact on the grid and shows nothing of single numbers."""
    wraps: ClassVar[bool] = True
    """Whether contributors may add any element of the group modulo 2^192, not only numbers whose sum fits."""
    multiplies: ClassVar[bool] = False
    """Whether ciphertexts can be multiplied by numbers, as a published form of DPDPCA needs."""
    estimator_options: ClassVar[tuple[str, ...]] = ()
    """Arguments of estimators that mean something to this method alone."""
    key_steps: ClassVar[frozenset[str]] = frozenset()
    """The names of the steps in which keys are made, as transcripts have them."""
    measured: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """The options under which ``atoll bench sums`` runs it, one line each."""

    @classmethod
    def messages(cls) -> tuple[type[Message], ...]:
        """Everything that may travel in a session."""
        helped = [kind for helper in cls.helpers.values() for kind in helper.messages]
        return tuple(dict.fromkeys((*cls.to_contributors, *cls.to_receivers, *cls.to_adder, *helped)))

    @classmethod
    @abstractmethod
    def trust(cls, contributors: int, options: Any) -> str:
        """One sentence for the disclosure: what a coalition must be to learn more than the sum."""

    @staticmethod
    def hidden_from(receiver: str, most: int, contributors: int) -> str:
        """The beginning of such a sentence: whom what an island adds stays hidden from."""
        hidden = f"What a single island adds stays hidden from the {receiver}"
        if most < 1:
            return f"{hidden}, as long as none of the {contributors} islands works together with it"
        some = f"one of the {contributors} islands works"
        if most > 1:
            some = f"up to {most} of the {contributors} islands work"
        return f"{hidden}, even if {some} together with it"

    @classmethod
    def withstands(cls, contributors: int, options: Any, *, adder_apart: bool) -> int:
        """How many contributors may pool what they have with the receiver, and still see sums only.

        ``adder_apart``: whoever adds, where the method has such a role, is no contributor.
        """
        del options, adder_apart
        return contributors - 2

    @classmethod
    def may_leave(cls, options: Any) -> int:
        """How many contributors may leave during the first sum without spoiling it."""
        del options
        return 0

    @classmethod
    def from_estimator(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The method's options, from the values of its ``estimator_options``."""
        return dict(given)

    def __init__(
        self,
        net: Network,
        record: Record,
        *,
        contributors: tuple[Address, ...],
        receivers: tuple[Address, ...],
        session: str,
        longest: int,
        adder: Address | None = None,
        options: Mapping[str, Any] | None = None,
        helpers: Mapping[str, Address] | None = None,
    ) -> None:
        self.net = net
        self.record = record
        self.contributors = contributors
        self.receivers = receivers
        self.adder = adder
        self.helped_by = dict(helpers or {})
        self.session = session
        self.longest = min(longest, BLOCK_VALUES)
        self.options: Any = read_options(type(self), options or {})
        self.check(len(contributors), self.options)
        self.present = frozenset(contributors)
        """Whose values are in the latest total (all contributors, unless the method lets some leave)."""
        self._contributed: set[str] = set()
        self._required: frozenset[Address] = frozenset()

    @classmethod
    def chosen(cls, options: Any, most: int) -> type[SecureSum]:
        """The class that runs a session with these options, of at most so many contributors: this one, unless
        a method has several forms."""
        del options, most
        return cls

    @classmethod
    def helped(cls, roles: frozenset[str]) -> type[SecureSum]:
        """The class that runs a session in which these helpers take part."""
        del roles
        return cls

    @classmethod
    def check(cls, contributors: int, options: Any) -> None:
        """Refuse options that so many contributors cannot have. Nothing by default."""
        del contributors, options

    @classmethod
    @abstractmethod
    def cost(cls, contributors: int, receivers: int, options: Any, lengths: Sequence[int]) -> Cost:
        """Expected messages and bytes for rounds of these lengths."""

    def require(self, contributors: frozenset[Address]) -> None:
        """From now on a total without one of these is not opened: it would not fit the earlier ones."""
        self._required = contributors

    @property
    def block_values(self) -> int:
        """The most values that travel in one block."""
        return BLOCK_VALUES

    async def open(self) -> None:
        """Exchange what all rounds share (seeds, keys). Nothing by default."""
        return

    async def contribute(self, round_name: str, values: Limbs) -> None:
        """Add this contributor's values to a round; a round is contributed to once."""
        if round_name in self._contributed:
            raise MessageError(f"round {round_name!r} was already contributed to")
        self._contributed.add(round_name)
        for name, columns in blocks(round_name, values.shape[1], self.block_values):
            await self.contribute_block(name, values[:, columns])

    async def close(self) -> None:
        """After a contributor's last round: let helpers go. Nothing by default."""
        return

    async def add_up(self, round_name: str, n: int) -> None:
        """Add a round for the receiver: the part of an ``adder``, where the method has one."""
        if self.has_adder and self.net.me == self.adder:
            for name, _ in blocks(round_name, n, self.block_values):
                await self.add_block(name)

    async def add_block(self, name: str) -> None:
        """Add one block of a round."""
        raise NotImplementedError

    async def total(self, round_name: str, n: int) -> Limbs:
        """The total of a round of ``n`` values (receivers only)."""
        result = np.empty((fixedpoint.LIMBS, n), np.uint64)
        present = None
        for name, columns in blocks(round_name, n, self.block_values):
            result[:, columns] = await self.total_block(name, columns.stop - columns.start)
            if present not in (None, self.present):
                raise PartyLeft("a contributor left between two blocks of one sum", hint="start a new run")
            present = self.present
        return result

    @abstractmethod
    async def contribute_block(self, name: str, values: Limbs) -> None:
        """Add one block of a round."""

    @abstractmethod
    async def total_block(self, name: str, n: int) -> Limbs:
        """Receive one block's total."""


def blocks(round_name: str, n: int, size: int) -> Iterator[tuple[str, slice]]:
    """A round's blocks of at most ``size`` values, each with a name of its own."""
    for index, start in enumerate(range(0, max(n, 1), size)):
        yield f"{round_name}#{index}", slice(start, min(start + size, n))


def count_blocks(lengths: Sequence[int]) -> int:
    """How many blocks rounds of these lengths have together."""
    return sum(max(1, -(-n // BLOCK_VALUES)) for n in lengths)


def read_options(method: type[SecureSum], options: Mapping[str, Any]) -> Any:
    """A method's options as its own typed struct."""
    return read_table(options, method.options_type, ("sum",))


def check_block(body: np.ndarray[Any, Any], n: int, sender: Address) -> Limbs:
    """A block as it must be: (3, n) limbs."""
    if body.dtype != np.uint64 or body.shape != (fixedpoint.LIMBS, n):
        raise MessageError(f"{sender} sent a block of shape {body.shape} where {n} values were due")
    return body


def check_round(expected: str, got: str, sender: Address) -> None:
    """Messages of another round or block are refused, never added."""
    if got != expected:
        raise MessageError(f"{sender} is in round {got!r} where {expected!r} was due")


def of_length(values: Limbs, n: int) -> Limbs:
    """A total as long as it must be."""
    if values.shape[1] != n:
        raise MessageError(f"a ciphertext of {values.shape[1]} values came where {n} were due")
    return values
