"""A provider's machine: its part of the keys, its own products, its parts of refreshes and openings.

A part of a refresh or an opening is a function of the secret key. So nothing of it leaves before providers
have compared what they were told (one round), and no ciphertext gets two.

Where providers verify, each computes what the coordinator computes: it is told sums of the providers' parts
and nothing else, checks them (:mod:`sums`), and makes parts for ciphertexts of its own reckoning only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from atoll.crypto import slots
from atoll.crypto.slots import Ciphertext
from atoll.errors import MessageError
from atoll.randomness import derive, fresh_seed
from atoll.secret_matrices.courses import digest_of
from atoll.secret_matrices.sessions import agreed_seeds
from atoll.secret_matrices.slots import shuffles, steps
from atoll.secret_matrices.slots.integers import (
    from_bytes,
    from_words,
    rounded,
    to_bytes,
    wide_numbers,
    within,
)
from atoll.secret_matrices.slots.keys import FIRST, PUBLIC, SECOND, KeyTotals, added
from atoll.secret_matrices.slots.later import Later
from atoll.secret_matrices.slots.machine import Integers, Matrix, Values, Where
from atoll.secret_matrices.slots.messages import (
    AskedRow,
    GivenRow,
    InputPart,
    KeyPart,
    KeyTotal,
    ListRow,
    MaskedIntegers,
    OthersKeyPart,
    OwnPart,
    OwnRow,
    PlacedBody,
    PublicShare,
    RefreshPart,
    SentRow,
    SharePart,
    SumOfParts,
    SwitchingPart,
)
from atoll.secret_matrices.slots.party import AT_ONCE, OPENING_LEVEL, Party, known
from atoll.secret_matrices.slots.sums import KeyAccounts, RowAccounts
from atoll.study.address import Address

_HASH = 32


class Provider(Party):
    """One provider's machine."""

    secret: slots.Secret

    # ---- keys ----

    async def set_up(self) -> None:
        """Agree on a session seed; make keys, and see whose they are."""
        seeds = await agreed_seeds(self.net, self.record, self.coordinator, self.providers)
        self.session = digest_of(self.digest, "slots", self.set.name, *seeds)
        self._seen = digest_of(self.session, "seen")
        self._answered: set[bytes] = set()
        self._opened_numbers = 0
        self.secret = await self.net.compute(
            slots.Secret.generate, self.set, self.record("secret key", fresh_seed)
        )
        totals = KeyTotals(self.set, self.session)
        coin = await self._agree_on_the_public_key(totals)
        self._accounts = RowAccounts(self.set, digest_of(coin, "rows"))
        await self._add_evaluation_keys(totals, coin)
        self.keys = await self.net.compute(totals.keys)

    async def _agree_on_the_public_key(self, totals: KeyTotals) -> bytes:
        """Whoever chose its part after the others' would choose the key that data are encrypted under."""
        part = await self._key_part(totals, PUBLIC)
        nonce = self.record("check nonce", fresh_seed)
        note = digest_of(self.session, self.me, part) + nonce
        notes = await self.net.agree(
            f"the seeds that {self.coordinator} sent", self.session, self.providers, note
        )
        await self.net.send(self.coordinator, KeyPart(0, totals.place(PUBLIC), part))
        parts = [part]
        for i, address in enumerate(self.providers):
            if address == self.net.me:
                continue
            theirs = await self._receive(OthersKeyPart, self.coordinator, 0, i)
            if digest_of(self.session, str(address), theirs) != notes[address][:_HASH]:
                raise MessageError(
                    f"the key part that {self.coordinator} gave for {address} is not the one it committed to",
                    hint="nothing was encrypted; ask both of them why",
                )
            parts.append(theirs)
        totals.totals[PUBLIC] = await self.net.compute(totals.added, parts)
        return digest_of(self.session, "checks", *(notes[p][_HASH:] for p in self.providers))

    async def _add_evaluation_keys(self, totals: KeyTotals, coin: bytes) -> None:
        accounts = KeyAccounts(self.set, coin)
        for name in totals.names[1:]:
            part = await self._key_part(totals, name)
            await self.net.send(self.coordinator, KeyPart(0, totals.place(name), part))
            total = await self._receive(KeyTotal, self.coordinator, 0, totals.place(name))
            if len(total) != len(part):
                raise MessageError(f"{self.coordinator} sent a key of another size than was due")
            totals.totals[name] = total
            await self.net.compute(accounts.book, part, total)
            self._see(name, 0, totals.place(name), await self.net.compute(digest_of, total))
            if name == FIRST:
                # The second round multiplies the secret by this: by a number of the coordinator's choice, it
                # would show the secret.
                await self._compare_keys(accounts)
        await self._compare_keys(accounts)

    async def _compare_keys(self, accounts: KeyAccounts) -> None:
        notes = await self._compare("the keys", accounts.note())
        if not accounts.right({str(p): note for p, note in notes.items()}):
            raise MessageError(
                f"{self.coordinator} sent {self.me} a key that is not the sum of the providers' parts",
                hint="nothing was encrypted; ask the coordinator why",
            )

    async def _key_part(self, totals: KeyTotals, name: str) -> memoryview:
        if name != SECOND:  # both rounds of one key are made from one seed
            self._key_seed = self.record(f"key {name}", fresh_seed)
        return await self.net.compute(totals.part, self.secret, name, self._key_seed)

    # ---- what was told ----

    def _see(self, what: str, step: int, place: int, digest: bytes) -> None:
        self._seen = digest_of(self._seen, what, step, place, digest)

    async def check(self, *, last: bool = False) -> None:
        """Compare everything that was broadcast so far with what the other providers were told."""
        del last
        note = self._accounts.note() if self.verify else b""
        notes = await self._compare(f"what {self.coordinator} sent until step {self._step}", note)
        if self.verify and not self._accounts.right(list(notes.values())):
            raise MessageError(
                f"{self.coordinator} sent {self.me} a sum that is not that of the providers' parts",
                hint="nothing more was opened; the coordinator, or a provider's account, is wrong",
            )

    async def _compare(self, topic: str, note: bytes = b"") -> dict[Address, bytes]:
        return await self.net.agree(topic, self._seen, self.providers, note)

    async def _answer(self, what: str, step: int, xs: Sequence[Ciphertext], asker: Address) -> None:
        """Every part is for a ciphertext that had none: two, with two masks, would show more than one."""
        for place, (mark, digest) in enumerate(await self.net.compute(steps.asked, xs)):
            if mark in self._answered:
                raise MessageError(
                    f"{asker} asks a second time for parts of one ciphertext, at step {step}",
                    hint=f"nothing was sent; ask {asker} why",
                )
            self._answered.add(mark)
            self._see(what, step, place, digest)

    # ---- totals and broadcasts ----

    async def _encrypted_total(self, rows: Sequence[Values] | None, count: int) -> Sequence[Later | None]:
        assert rows is not None
        step = self.next_step()
        await self._send_all(SentRow, step, partial(steps.encrypted, self.keys), rows, f"encryption {step}")
        return await self._sums(step, [self.fresh_level] * count)

    async def _total(self, rows: Matrix) -> Sequence[Later | None]:
        step = self.next_step()
        # A ciphertext times clear numbers shows them to whoever has the ciphertext: not this one.
        make = partial(steps.rerandomised, self.keys)
        await self._send_all(SentRow, step, make, [x.held for x in rows], f"total {step}")
        return await self._sums(step, [x.level for x in rows])

    async def _sums(self, step: int, levels: Sequence[int]) -> Sequence[Later | None]:
        """The sums of rows, which providers who verify are told."""
        if not self.verify:
            return [None] * len(levels)
        held = []
        for place, level in enumerate(levels):
            body = await self._sum(SentRow, step, place)
            held.append(known(await self.net.compute(steps.read, self.set, body, level, self.coordinator)))
        return held

    async def _sum(self, kind: type[PlacedBody], step: int, place: int) -> memoryview:
        """What is said to be the sum of all parts of a row; compared before anything made of it is opened."""
        body = await self._receive(SumOfParts, self.coordinator, step, place)
        await self.net.compute(self._accounts.take, kind, step, place, body)
        self._see("sum", step, place, await self.net.compute(digest_of, body))
        return body

    async def _broadcast(self, rows: Matrix) -> Sequence[Later]:
        step, held = self.next_step(), []
        if self.verify:
            return [x.held for x in rows]
        for place, row in enumerate(rows):
            body = await self._receive(GivenRow, self.coordinator, step, place)
            x, digest = await self.net.compute(steps.seen, self.set, body, row.level, self.coordinator)
            self._see("given", step, place, digest)
            held.append(known(x))
        return held

    async def _send_all(
        self,
        kind: type[PlacedBody],
        step: int,
        make: Callable[..., list[memoryview]],
        items: Sequence[Any],
        draw: str,
        *others: Sequence[Any],
        to: Address | None = None,
        booked: bool = True,
    ) -> None:
        """Some at a time: as many as keep the cores busy, and no more than need be held.

        ``booked``: providers who verify will check the sum of these parts.
        """
        seed = self._seed(draw)
        for start in range(0, len(items), AT_ONCE):
            chosen = slice(start, start + AT_ONCE)
            some = items[chosen]
            if isinstance(some[0], Later):
                some = await self._values(some)
            more = [other[chosen] for other in others]
            for place, body in enumerate(
                await self.net.compute(make, some, derive(seed, "from", start), *more), start
            ):
                if self.verify and booked:
                    await self.net.compute(self._accounts.give, kind, step, place, body)
                await self.net.send(to or self.coordinator, kind(step, place, body))

    # ---- refreshes and openings ----

    def _flooding(self, numbers: int) -> int:
        """Bits, for an opening of so many more numbers."""
        self._opened_numbers += numbers
        return steps.flooding_bits(self._opened_numbers)

    async def _asked(self, step: int, rows: Matrix, level: int) -> list[Ciphertext]:
        """The rows that parts are made for, as the coordinator sent them or as they are here."""
        if self.verify:
            return await self._asked_of_itself(rows, level)
        here = await self._values([x.held for x in rows if x.where is Where.EVERYBODY])
        mine, asked = iter(here), []
        for place, row in enumerate(rows):
            if row.where is Where.EVERYBODY:
                asked.append(next(mine))
            else:
                asked.append(await self._half(AskedRow, self.coordinator, step, place, min(level, row.level)))
        return asked

    async def _asked_of_itself(self, rows: Matrix, level: int) -> list[Ciphertext]:
        """The same rows by an own reckoning, in which the coordinator has no say."""
        mine = await self._lowered([x for x in rows if x.where is Where.COORDINATOR], level)
        here = await self._values([x.held for x in rows if x.where is Where.EVERYBODY])
        low, common = iter(mine), iter(here)
        return [next(low if x.where is Where.COORDINATOR else common) for x in rows]

    async def _half(
        self, kind: type[PlacedBody], sender: Address, step: int, place: int, level: int
    ) -> Ciphertext:
        body = await self._receive(kind, sender, step, place)
        x: Ciphertext = await self.net.compute(steps.read_half, self.set, body, level, sender)
        return x

    async def _refresh(self, rows: Matrix) -> Sequence[Later | None]:
        step = self.next_step()
        xs = await self._asked(step, rows, self.lowest)
        await self._answer("refresh", step, xs, self.coordinator)
        await self.check()
        commons = [self._common("refresh", step, place) for place in range(len(rows))]
        make = partial(steps.refresh_parts, self.secret)
        await self._send_all(RefreshPart, step, make, xs, f"refresh {step}", commons)
        if not self.verify:
            return [None] * len(rows)
        totals = [await self._sum(RefreshPart, step, place) for place in range(len(rows))]
        made = await self.net.compute(slots.refreshed_all, xs, totals, commons, self.n_providers)
        return [known(x) for x in made]

    async def _opened(
        self, rows: Matrix, lengths: Sequence[int], receivers: frozenset[str]
    ) -> list[Values] | None:
        step = self.next_step()
        circle = self._circle(receivers)
        key = await circle.public()
        xs = await self._asked(step, rows, OPENING_LEVEL)
        self._see("receivers", step, 0, digest_of(key))
        await self._answer("opening", step, xs, self.coordinator)
        await self.check()
        make = partial(steps.switching_parts, self.secret, (circle.common, key), self._flooding(sum(lengths)))
        all_read = all(str(p) in receivers for p in self.providers)
        await self._send_all(SwitchingPart, step, make, xs, f"opening {step}", lengths, booked=all_read)
        if self.me not in receivers:
            return None
        if not (self.verify and all_read):
            return await circle.rows(lengths, step)
        found = []
        for place, (x, length) in enumerate(zip(xs, lengths, strict=True)):
            body = await circle.body(step, place)
            first = await self.net.compute(steps.first_half, x, OPENING_LEVEL)
            await self.net.compute(self._accounts.take_with, SwitchingPart, step, place, body, first)
            self._see("switched", step, place, digest_of(body))
            found.append(await circle.read(body, length))
        return found

    async def _opened_own(self, rows: Matrix, lengths: Sequence[int]) -> list[Values]:
        step, others = self.next_step(), [p for p in self.providers if p != self.net.me]
        asked = {self.net.me: await self._asking(step, rows)}
        for place, x in enumerate(asked[self.net.me]):
            await self.net.broadcast(others, OwnRow(step, place, x.half()))
        for other in others:
            asked[other] = [
                await self._half(OwnRow, other, step, place, min(OPENING_LEVEL, row.level))
                for place, row in enumerate(rows)
            ]
        for address in self.providers:
            await self._answer(f"own of {address}", step, asked[address], address)
        await self.check()
        bits = self._flooding(self.n_providers * sum(lengths))
        make = partial(steps.opening_parts, self.secret, bits)
        for other in others:
            name = f"opening {step} {other}"
            await self._send_all(OwnPart, step, make, asked[other], name, lengths, to=other, booked=False)
        parts = await self.net.compute(make, asked[self.net.me], self._seed(f"opening {step}"), lengths)
        found = []
        for place, (x, part, length) in enumerate(zip(asked[self.net.me], parts, lengths, strict=True)):
            theirs = [await self._receive(OwnPart, other, step, place) for other in others]
            total = added(self.set, [part, *theirs])
            found.append(await self.net.compute(slots.opened, x, total, length))
        return found

    async def _asking(self, step: int, rows: Matrix) -> list[Ciphertext]:
        """Own rows as others may see them: re-randomised, and no longer than openings need."""
        xs = await self._lowered(rows, OPENING_LEVEL)
        hidden: list[Ciphertext] = await self.net.compute(
            self.keys.rerandomised_all, xs, self._seed(f"own {step}")
        )
        return hidden

    # ---- a shuffled list (the paper's appendix D.3) ----

    async def _shuffled(self, values: Sequence[float]) -> Sequence[None]:
        step, place = self.next_step(), self.providers.index(self.net.me)
        seed, others = self._seed(f"shuffle {step}"), (*self.providers, self.coordinator)
        if place == 0:
            rows = await self.net.compute(shuffles.first, self.keys, values, seed)
        else:
            before = self.providers[place - 1]
            came = [
                await self.net.compute(shuffles.read, self.set, body, before)
                for body in [await self._receive(ListRow, before, step, i) for i in range(len(values))]
            ]
            rows = await self.net.compute(shuffles.passed_on, self.keys, came, seed)
        for i, body in enumerate(rows):
            await self.net.send(others[place + 1], ListRow(step, i, body))
        return [None] * len(values)

    # ---- shares (the paper's appendix D.1, protocol 1) ----

    async def _to_shares(self, rows: Matrix, lengths: Sequence[int], fraction: int) -> list[Integers]:
        step, first = self.next_step(), self.providers[0]
        xs = await self._asked(step, rows, self.lowest)
        await self._answer("conversion", step, xs, self.coordinator)
        await self.check()
        parts, shares = await self.net.compute(
            steps.share_parts, self.secret, xs, self._seed(f"shares {step}")
        )
        found = []
        for place, (part, own, length) in enumerate(zip(parts, shares, lengths, strict=True)):
            if self.verify:
                await self.net.compute(self._accounts.give, SharePart, step, place, part)
            await self.net.send(self.coordinator, SharePart(step, place, part))
            found.append(from_words(own, length))
        if self.verify:
            totals = [await self._sum(SharePart, step, place) for place in range(len(rows))]
            await self.check()  # masks of what is computed with shares are wide enough for true numbers
        for place, length in enumerate(lengths if self.net.me == first else ()):
            if self.verify:
                masked = await self.net.compute(
                    slots.public_share, xs[place], totals[place], self.n_providers
                )
                found[place] = found[place] + from_words(masked, length)
            else:
                body = await self._receive(PublicShare, self.coordinator, step, place)
                found[place] = found[place] + from_bytes(body, length)
        return [values << (fraction - self.set.scale_bits) for values in found]

    async def _from_shares(
        self, shares: Sequence[Integers] | None, lengths: Sequence[int], modulus: int, fraction: int
    ) -> Sequence[Later | None]:
        assert shares is not None
        step, first, shift = self.next_step(), self.providers[0], fraction - self.set.scale_bits
        seed, size = self._seed(f"inputs {step}"), (modulus.bit_length() + 8) // 8
        hiding = [
            wide_numbers(derive(seed, "mask", place), length, self.set.mask_bits + shift)
            for place, length in enumerate(lengths)
        ]
        own = [rounded(mask, shift) for mask in hiding]
        for place, (mine, mask) in enumerate(zip(shares, hiding, strict=True)):
            values = (mine - mask) % modulus
            if self.net.me != first:
                await self.net.send(first, MaskedIntegers(step, place, to_bytes(values, size)))
                continue
            for other in self.providers[1:]:
                body = await self._receive(MaskedIntegers, other, step, place)
                values = values + from_bytes(body, lengths[place], size)
            masked = rounded((values + modulus // 2) % modulus - modulus // 2, shift)
            own[place] = own[place] + within(masked, self.set.mask_bits + self.n_providers.bit_length())
        commons = [self._common("inputs", step, place) for place in range(len(own))]
        make = partial(steps.input_parts, self.secret)
        await self._send_all(InputPart, step, make, own, f"input parts {step}", commons)
        if not self.verify:
            return [None] * len(own)
        totals = [await self._sum(InputPart, step, place) for place in range(len(own))]
        pairs = zip(totals, commons, strict=True)
        return [known(await self.net.compute(slots.from_inputs, self.set, *pair)) for pair in pairs]
