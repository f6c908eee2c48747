"""``atoll identity``: a site's keys, and those of its partners."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atoll.cli import console
from atoll.cli.commands import Command, Group
from atoll.cli.options import FLAG, JsonOption
from atoll.cli.sites import PassphraseOption, SiteOption, identity_of, opened, read_passphrase
from atoll.errors import ParameterError

if TYPE_CHECKING:
    from atoll.crypto.identity import PublicIdentity
    from atoll.runtime.nats.site import Site

app = typer.Typer(cls=Group, help="Make and show a site's keys, and note those of partners.")

SealOption = Annotated[
    bool, typer.Option("--passphrase", metavar=FLAG, help="Ask for a passphrase that seals the keys.")
]


@app.command(cls=Command)
def new(
    site: SiteOption = None, passphrase: SealOption = False, passphrase_file: PassphraseOption = None
) -> None:
    """Make this site's keys. This is done once.

    Partners need the fingerprint that it prints. Tell it to them by phone or on
    paper: nothing else says that the keys are yours.
    """
    from atoll.crypto.identity import Identity
    from atoll.runtime.nats.site import Site

    made = Site.make(site)
    Identity.new().save(made.identity_file, _chosen(passphrase, passphrase_file))
    _show(made)


def _chosen(asks: bool, file: Path | None) -> str | None:
    if file is not None:
        return read_passphrase(file)
    if not asks:
        return None
    return str(typer.prompt("passphrase", hide_input=True, confirmation_prompt=True, err=True))


@app.command(cls=Command)
def show(
    alone: Annotated[
        bool, typer.Option("--fingerprint", metavar=FLAG, help="Print the fingerprint and nothing else.")
    ] = False,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show this site's fingerprint, and those of its partners."""
    from atoll.crypto.identity import public_of, words

    at = opened(site)
    if alone:
        print(at.fingerprint)
        return
    if as_json:
        public = public_of(at.identity_file)
        console.print_json(
            {
                "fingerprint": public.fingerprint,
                "words": public.words,
                "sealed": at.needs_passphrase,
                "partners": at.partners(),
            }
        )
        return
    _show(at)
    partners = at.partners()
    if partners:
        made = console.table("partner", "fingerprint in words")
        for name, fingerprint in sorted(partners.items()):
            made.add_row(name, words(fingerprint))
        console.out().print(made)


def _show(site: Site) -> None:
    from atoll.crypto.identity import public_of

    public = public_of(site.identity_file)
    screen = console.out()
    screen.print(f"fingerprint  {public.fingerprint}", soft_wrap=True)
    screen.print(f"in words     {public.words}", soft_wrap=True)
    screen.print(f"[dim]kept in      {site.identity_file}[/]", soft_wrap=True)


@app.command(cls=Command)
def trust(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What you call the partner.", show_default=False)
    ],
    fingerprint: Annotated[
        str,
        typer.Argument(metavar="FINGERPRINT", help="As the partner reads it to you.", show_default=False),
    ],
    site: SiteOption = None,
) -> None:
    """Note a partner's fingerprint, once you have compared it.

    Names of partners can then stand for fingerprints in Python: fit(\\["a", "b"]).
    """
    from atoll.runtime.nats.carrier import check_fingerprint

    opened(site).set_partner(name, check_fingerprint(fingerprint.strip().lower()))


@app.command(cls=Command)
def rotate(
    site: SiteOption = None, passphrase: SealOption = False, passphrase_file: PassphraseOption = None
) -> None:
    """Make new keys in place of the old ones.

    Writes a notice, signed with both. Give it to your partners, who note it
    with atoll identity accept. Studies that name the old fingerprint do not run
    any more, and the hub needs a new invitation.
    """
    from atoll.crypto.identity import Identity, rotation
    from atoll.runtime.nats import kept

    at = opened(site)
    _refuse_while_runs_go_on(at)
    old, _ = identity_of(at, passphrase_file)
    fresh = Identity.new()
    notice = rotation(old, fresh, int(time.time()))
    _write_notice(at, f"rotated-{old.fingerprint[:16]}.notice", notice.encode())
    kept.reseal(at.kept, old, fresh.public)
    at.identity_file.replace(at.folder / f"identity-{old.fingerprint[:16]}.old")
    fresh.save(at.identity_file, _chosen(passphrase, passphrase_file))
    at.hub_file.unlink(missing_ok=True)
    _show(at)


@app.command(cls=Command)
def revoke(site: SiteOption = None, passphrase_file: PassphraseOption = None) -> None:
    """Declare this site's keys void, as after a theft.

    Writes a signed notice. Give it to your partners and to the hub's owner:
    whoever has accepted it refuses these keys for ever.
    """
    from atoll.crypto.identity import revocation

    at = opened(site)
    identity, _ = identity_of(at, passphrase_file)
    _write_notice(
        at, f"revoked-{identity.fingerprint[:16]}.notice", revocation(identity, int(time.time())).encode()
    )
    at.identity_file.replace(at.folder / f"identity-{identity.fingerprint[:16]}.revoked")
    at.hub_file.unlink(missing_ok=True)


@app.command(cls=Command)
def accept(
    notice: Annotated[Path, typer.Argument(metavar="NOTICE", help="The partner's file.", show_default=False)],
    site: SiteOption = None,
) -> None:
    """Note that a partner's keys were replaced or revoked.

    Checks the signatures. Call the partner first: whoever stole keys can sign
    such a notice, too.
    """
    from atoll.crypto.identity import PublicIdentity, read_notice
    from atoll.runtime.result import write_whole

    at = opened(site)
    try:
        data = notice.read_bytes()
    except OSError as error:
        raise ParameterError(f"cannot read {notice}: {error.strerror}") from None
    read = read_notice(data)
    old = PublicIdentity.from_raw(read.old)
    write_whole(at.notices / f"{read.kind}-{old.fingerprint[:16]}.notice", data)
    _tell_accepted(at, old, PublicIdentity.from_raw(read.new) if read.new else None)


def _tell_accepted(site: Site, old: PublicIdentity, successor: PublicIdentity | None) -> None:
    names = [name for name, known in site.partners().items() if known == old.fingerprint]
    for name in names:
        site.set_partner(name, None if successor is None else successor.fingerprint)
    who = ", ".join(names) or "a key that is not noted here"
    became = "is not to be trusted any more" if successor is None else f"is now {successor.fingerprint}"
    console.out().print(f"{who} {became}", soft_wrap=True)


def _refuse_while_runs_go_on(site: Site) -> None:
    from atoll.runtime.nats.runs import ACTIVE, every_run

    active = [folder.name for folder, state in every_run(site) if state.phase in ACTIVE]
    if active:
        raise ParameterError(
            f"the run {active[0]} needs the old keys",
            hint="wait until it has ended, or end it: atoll node decline, atoll study cancel",
        )


def _write_notice(site: Site, name: str, data: bytes) -> None:
    from atoll.runtime.result import write_whole

    path = site.notices / name
    write_whole(path, data)
    console.out().print(f"wrote {path}", soft_wrap=True)
