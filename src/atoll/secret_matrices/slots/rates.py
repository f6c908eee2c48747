"""What operations on vectors in slots take: processor seconds at the paper's parameters.

``atoll bench calibrate`` measures them with the steps of secret matrices; the table that comes with the
package serves until then. Arithmetic in slots has one course on every processor, so there is one table.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import msgspec

from atoll.secret_matrices.slots.machine import Operation, Tally


class SlotRates(msgspec.Struct, frozen=True):
    """Processor seconds of one operation."""

    each: dict[Operation, float]
    """As counted, halfway between refreshes. A refresh is the coordinator's share here."""
    refresh_part: float
    """A provider's share of a refresh."""
    part_added: float
    """Adding one of these to the others."""
    opening_part: float
    """A provider's share of an opening."""
    keys: float
    """A provider's parts of all keys, and reading them."""
    keys_read: float
    """Reading them alone."""
    key_byte: float
    """Adding up one byte of keys."""

    def provider(self, tally: Tally) -> float:
        """What a provider's operations take, keys apart."""
        return self._of(tally, self.refresh_part)

    def coordinator(self, tally: Tally, n_providers: int) -> float:
        """What the coordinator's operations take."""
        return self._of(tally, self.each[Operation.REFRESH] + n_providers * self.part_added)

    def _of(self, tally: Tally, refresh: float) -> float:
        rates = {**self.each, Operation.REFRESH: refresh}
        return sum(times * rates[kind] for kind, times in tally.total.items())


@lru_cache(maxsize=1)
def shipped() -> SlotRates:
    """The table that came with the package."""
    text = resources.files("atoll.secret_matrices.slots").joinpath("rates.json").read_bytes()
    return msgspec.json.decode(text, type=SlotRates)
