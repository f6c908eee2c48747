"""The coordinator's machine: it has no key. It adds up, computes on what is encrypted, and passes on."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.crypto import slots
from atoll.crypto.slots import Ciphertext
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.sessions import collected_seeds
from atoll.secret_matrices.slots import shuffles, steps
from atoll.secret_matrices.slots.integers import from_words, to_bytes
from atoll.secret_matrices.slots.keys import PUBLIC, KeyTotals, added
from atoll.secret_matrices.slots.later import Later
from atoll.secret_matrices.slots.machine import Integers, Matrix, Values, Where
from atoll.secret_matrices.slots.messages import (
    AskedRow,
    GivenRow,
    InputPart,
    KeyPart,
    KeyTotal,
    ListRow,
    OthersKeyPart,
    PlacedBody,
    PublicShare,
    RefreshPart,
    SentRow,
    SharePart,
    SumOfParts,
    SwitchedRow,
    SwitchingPart,
    placed,
)
from atoll.secret_matrices.slots.party import AT_ONCE, OPENING_LEVEL, Party, known
from atoll.study.address import Address


class Coordinator(Party):
    """The coordinator's machine."""

    async def set_up(self) -> None:
        """Collect seeds and key parts."""
        seeds = await collected_seeds(self.net, self.providers)
        self.session = digest_of(self.digest, "slots", self.set.name, *seeds)
        totals = KeyTotals(self.set, self.session)
        parts = await self.net.gather(KeyPart, self.providers)
        bodies = [placed(parts[p], p, 0, totals.place(PUBLIC)) for p in self.providers]
        for i, body in enumerate(bodies):
            await self.net.broadcast(
                [p for j, p in enumerate(self.providers) if j != i], OthersKeyPart(0, i, body)
            )
        totals.totals[PUBLIC] = await self.net.compute(totals.added, bodies)
        for name in totals.names[1:]:
            place = totals.place(name)
            totals.totals[name] = await self._sum_of_parts(KeyPart, 0, place)
            await self.net.broadcast(self.providers, KeyTotal(0, place, totals.totals[name]))
        self.keys = await self.net.compute(totals.keys)

    async def _sum_of_parts(self, kind: type[PlacedBody], step: int, place: int) -> memoryview:
        """Of one part from each provider, added up as they arrive."""
        total: list[memoryview] = []

        def add(sender: Address, message: PlacedBody) -> None:
            total[:] = [added(self.set, [*total, placed(message, sender, step, place)])]

        await self.net.fold(kind, self.providers, add)
        return total[0]

    async def _told_sum(self, kind: type[PlacedBody], step: int, place: int) -> memoryview:
        """The same, told to all providers where they verify: they go on with it themselves."""
        total = await self._sum_of_parts(kind, step, place)
        await self._tell(step, place, total)
        return total

    async def _tell(self, step: int, place: int, total: memoryview) -> None:
        if self.verify:
            await self.net.broadcast(self.providers, SumOfParts(step, place, total))

    # ---- totals and broadcasts ----

    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Later]:
        del rows
        return await self._sums([self.fresh_level] * count)

    async def _total(self, rows: Matrix) -> Sequence[Later]:
        return await self._sums([x.level for x in rows])

    async def _sums(self, levels: Sequence[int]) -> list[Later]:
        step, sums = self.next_step(), []
        for place, level in enumerate(levels):
            total: list[Ciphertext] = []

            def add(sender: Address, message: SentRow) -> None:
                x = steps.read(self.set, placed(message, sender, step, place), level, sender)  # noqa: B023
                total[:] = [self.keys.add(total[0], x) if total else x]  # noqa: B023

            await self.net.fold(SentRow, self.providers, add)
            if self.verify:
                await self._tell(step, place, memoryview(total[0].to_bytes()))
            sums.append(known(total[0]))
        return sums

    async def _broadcast(self, rows: Matrix) -> Sequence[Later]:
        step = self.next_step()
        if self.verify:
            return [x.held for x in rows]
        for place, x in enumerate(await self._values([x.held for x in rows])):
            await self.net.broadcast(self.providers, GivenRow(step, place, memoryview(x.to_bytes())))
        return [x.held for x in rows]

    # ---- refreshes and openings ----

    async def _ask(self, step: int, rows: Matrix, level: int) -> list[Ciphertext]:
        """The rows as parts are made for them; providers are sent halves of those that they do not have."""
        own = [x for x in rows if x.where is Where.COORDINATOR]
        low, here = await self._lowered(own, level), [x for x in rows if x.where is Where.EVERYBODY]
        mine, common = iter(low), iter(await self._values([x.held for x in here]))
        xs = [next(mine if x.where is Where.COORDINATOR else common) for x in rows]
        for place, (row, x) in enumerate(zip(rows, xs, strict=True)):
            if row.where is Where.COORDINATOR and not self.verify:
                await self.net.broadcast(self.providers, AskedRow(step, place, x.half()))
        return xs

    async def _refresh(self, rows: Matrix) -> Sequence[Later]:
        step = self.next_step()
        fresh: list[Later] = []
        xs = await self._ask(step, rows, self.lowest)
        for start in range(0, len(xs), AT_ONCE):
            some = range(start, min(start + AT_ONCE, len(xs)))
            totals = [await self._told_sum(RefreshPart, step, place) for place in some]
            commons = [self._common("refresh", step, place) for place in some]
            asked = [xs[place] for place in some]
            made = await self.net.compute(slots.refreshed_all, asked, totals, commons, self.n_providers)
            fresh.extend(known(x) for x in made)
        return fresh

    async def _opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        step, found = self.next_step(), []
        circle = self._circle(receivers)
        if self.me in receivers:
            await circle.public()
        others = [a for a in circle.members if a != self.net.me]
        xs = await self._ask(step, rows, OPENING_LEVEL)
        for place, (x, length) in enumerate(zip(xs, lengths, strict=True)):
            parts = await self._sum_of_parts(SwitchingPart, step, place)
            switched = memoryview(await self.net.compute(slots.switched, x, parts))
            await self.net.broadcast(others, SwitchedRow(step, place, switched))
            if self.me in receivers:
                found.append(await circle.read(switched, length))
        return found if self.me in receivers else None

    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> None:
        del rows, lengths
        self.next_step()

    async def _shuffled(self, values: Sequence[float]) -> Sequence[Later]:
        step, last = self.next_step(), self.providers[-1]
        bodies = [await self._receive(ListRow, last, step, i) for i in range(len(values))]
        return [known(await self.net.compute(shuffles.read, self.set, body, last)) for body in bodies]

    # ---- shares ----

    async def _to_shares(self, rows: Matrix, lengths: Sequence[int], fraction: int) -> None:
        del fraction
        step, first = self.next_step(), self.providers[0]
        for place, (x, length) in enumerate(
            zip(await self._ask(step, rows, self.lowest), lengths, strict=True)
        ):
            parts = await self._told_sum(SharePart, step, place)
            if self.verify:
                continue
            masked = await self.net.compute(slots.public_share, x, parts, self.n_providers)
            await self.net.send(first, PublicShare(step, place, to_bytes(from_words(masked, length))))

    async def _from_shares(
        self, shares: Sequence[Integers] | None, lengths: Sequence[int], modulus: int, fraction: int
    ) -> Sequence[Later]:
        del shares, modulus, fraction
        step, made = self.next_step(), []
        for place in range(len(lengths)):
            parts = await self._told_sum(InputPart, step, place)
            common = self._common("inputs", step, place)
            made.append(known(await self.net.compute(slots.from_inputs, self.set, parts, common)))
        return made
