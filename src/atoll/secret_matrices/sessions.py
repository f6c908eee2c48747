"""A session's public seed, which is new if one provider's part of it is."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.errors import MessageError
from atoll.network import Network, Record
from atoll.randomness import SEED_BYTES, fresh_seed
from atoll.secret_matrices.messages import SeedPart, SessionSeed
from atoll.study.address import Address


async def agreed_seeds(
    net: Network, record: Record, coordinator: Address, providers: Sequence[Address]
) -> tuple[bytes, ...]:
    """A provider's: everybody's parts, its own among them."""
    seed, place = record("session seed", fresh_seed), providers.index(net.me)
    await net.send(coordinator, SeedPart(seed))
    seeds = (await net.receive(SessionSeed, coordinator)).seeds
    whole = len(seeds) == len(providers) and all(len(s) == SEED_BYTES for s in seeds)
    if not whole or seeds[place] != seed:
        raise MessageError(
            f"the session's seed that {coordinator} sent is not made from every provider's part",
            hint="nothing was encrypted; ask the coordinator why",
        )
    return seeds


async def collected_seeds(net: Network, providers: Sequence[Address]) -> tuple[bytes, ...]:
    """The coordinator's: it passes everybody's parts on."""
    parts = await net.gather(SeedPart, providers)
    seeds = tuple(parts[p].seed for p in providers)
    await net.broadcast(providers, SessionSeed(seeds))
    return seeds
