"""The engine across machines: islands are named, tables stay where they are, the caller is a party too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from atoll import errors
from atoll.errors import AtollError, ParameterError, RoleFailed, RunError
from atoll.protocols.base import Learned, Protocol, resolve
from atoll.protocols.own import Own
from atoll.runtime.engine import Engine, Outcome, Progress
from atoll.runtime.nats import runs, submit
from atoll.runtime.nats.node import Options
from atoll.runtime.nats.requests import Request
from atoll.runtime.nats.runs import RunFolder, State
from atoll.runtime.nats.site import Site
from atoll.runtime.result import load_result
from atoll.runtime.transcript import Transcript
from atoll.study.address import Address
from atoll.study.model import Party, Study


class NatsEngine(Engine):
    """Runs studies with the nodes of other sites: ``atoll.PCA(engine=atoll.NatsEngine()).fit(["a", "b"])``.

    Parameters
    ----------
    url : str, optional
        The hub's address. The site has joined one hub; another address is an error.
    identity : path, optional
        The site's folder, or the identity's file in it; the usual site if left out.
    parties : mapping, optional
        Fingerprints by party, besides those noted with ``atoll identity trust``. What a hub says about keys
        is not used.
    roles : mapping, optional
        Which party plays a role that is no island's, such as ``{"server": "stats-office"}``. The caller's
        site plays the others.
    timeout : float, optional
        Seconds to wait for the result; the run is then cancelled.
    deadline : float
        Seconds for which a party may be silent during the run.
    reason : str
        Why: every party reads it before it approves.
    name : str, optional
        What the caller's party is called in the study.
    rehearse : bool
        On rows that every party makes up.
    passphrase : str, optional
        Of the site's identity.
    """

    elsewhere: ClassVar[bool] = True

    def __init__(
        self,
        url: str | None = None,
        identity: str | Path | None = None,
        *,
        parties: Mapping[str, str] | None = None,
        roles: Mapping[str, str] | None = None,
        timeout: float | None = None,
        deadline: float = 600.0,
        reason: str = "",
        name: str | None = None,
        rehearse: bool = False,
        passphrase: str | None = None,
    ) -> None:
        self.url = url
        self.identity = identity
        self.parties = dict(parties or {})
        self.roles = dict(roles or {})
        self.timeout = timeout
        self.deadline = deadline
        self.reason = reason
        self.name = name
        self.rehearse = rehearse
        self._passphrase = passphrase

    def __repr__(self) -> str:
        return f"NatsEngine(url={self.url!r}, identity={str(self.identity)!r}, roles={self.roles})"

    def run(
        self,
        protocol: Protocol,
        study: Study,
        own: Mapping[str, Own],
        *,
        progress: Progress | None = None,
    ) -> Outcome:
        """Submit the study, wait for everybody, and give back what the caller's own roles learned."""
        given = [name for name, mine in own.items() if mine.island is not None]
        if given:
            raise ParameterError(
                f"{given[0]} was given a table, and this engine leaves tables where they are",
                hint="name the islands: fit(['a', 'b']); each site's node has its own table",
            )
        site = self.site()
        study = resolve(protocol, self.pinned(study, site))
        key = site.identity(self._passphrase)
        options = Options(passphrase=self._passphrase, lookup=submit.lookup, deadline=self.deadline)
        with submit.node_of(site, key, options):
            folder = submit.submit(site, study, self.reason, deadline=self.deadline, rehearse=self.rehearse)
            state = self._waited(folder, progress)
            submit.until_told(site)
        if state.phase != runs.FINISHED:
            raise failure_of(state)
        return _outcome(folder, protocol, study, state)

    def site(self) -> Site:
        """The caller's site, at the hub that is meant."""
        folder = None if self.identity is None else Path(self.identity)
        if folder is not None and folder.is_file():
            folder = folder.parent
        site = Site(folder)
        if self.url is not None and site.hub().url != self.url:
            raise ParameterError(
                f"this site has joined {site.hub().url}, not {self.url}", hint="atoll node join INVITATION"
            )
        return site

    # ---- the study, with a key for everybody ----

    def pinned(self, study: Study, site: Site) -> Study:
        """The study with fingerprints: of partners for what they play, and of this site for all the rest."""
        known = {**site.partners(), **self.parties}
        me = self.name or site.hub().name or "caller"
        elsewhere: dict[str, tuple[str, ...]] = {}
        mine: tuple[str, ...] = ()
        for party in study.parties:
            for role in party.roles:
                player = self.roles.get(role, party.name)
                is_mine = player == me or (player == party.name and party.name in (role, f"{role}-role"))
                if player in known:
                    elsewhere[player] = (*elsewhere.get(player, ()), role)
                elif is_mine:
                    mine = (*mine, role)
                else:
                    raise ParameterError(
                        f"there is no fingerprint of {player!r} here, which is to be {role}",
                        hint=f"compare it with them, then: atoll identity trust {player} FINGERPRINT",
                    )
        parties = [Party(one, roles, known[one]) for one, roles in elsewhere.items()]
        if mine:
            name = mine[0] if len(mine) == 1 and self.name is None else _free(me, study)
            parties.append(Party(name, mine, site.fingerprint))
        return msgspec.structs.replace(study, parties=tuple(parties))

    def _waited(self, folder: RunFolder, progress: Progress | None) -> State:
        def watch(state: State) -> None:
            if progress is not None:
                now = folder.progress()
                what = state.phase if now is None else now.what
                progress(what, Transcript())

        try:
            return submit.wait(folder, self.timeout, watch)
        except BaseException:
            # Nobody waits for the result: the others must not go on for nothing.
            submit.asked(folder.site, Request(does="cancel", run=folder.name))
            submit.until_told(folder.site)
            raise


def _free(name: str, study: Study) -> str:
    taken = {role for party in study.parties for role in party.roles}
    return name if name not in taken else f"{name}-site"


def failure_of(state: State) -> AtollError:
    """Why a run gave nothing: an error of the class that ended it, with who is missing."""
    kind: Any = getattr(errors, state.error, RunError)
    missing = f"; missing: {', '.join(state.missing)}" if state.missing else ""
    words = f"the run {state.name} was {state.phase}: {state.words}{missing}"
    if not (isinstance(kind, type) and issubclass(kind, RunError)) or kind is RoleFailed:
        kind = RunError
    error: AtollError = kind(words, hint=_hint(state))
    error.role = state.role or None
    return error


def _hint(state: State) -> str:
    if state.phase == runs.DECLINED:
        said = "; ".join(f"{p}: {a.words}" for p, a in state.answers.items() if a.words)
        return said or "ask them why"
    if state.silent:
        return f"ask {', '.join(state.silent)} whether the node runs"
    return "atoll node logs says more; what went wrong elsewhere stays there"


def _outcome(folder: RunFolder, protocol: Protocol, study: Study, state: State) -> Outcome:
    if not folder.result.exists():
        return Outcome({}, Transcript(), study)
    result = load_result(folder.result)
    mine = next(party for party in study.parties if party.name == state.me)
    learned = {}
    for role in mine.roles:
        me = Address(mine.name, role)
        names = {n for output, o in protocol.outputs.items() if study.releases(output, me) for n in o.values}
        learned[me] = Learned({name: v for name, v in result.outputs.items() if name in names})
    return Outcome(learned, result.transcript, study)
