"""What the roles of the paper variant learn, in plain words, and what it can release."""

from __future__ import annotations

from atoll import secure_sums
from atoll.codec import Message
from atoll.network import Compared
from atoll.protocols import handshake
from atoll.protocols.base import Disclosure, Output, Protection
from atoll.protocols.pca.released import CONSUMER, PROVIDER, VARIANCES, SampleCount
from atoll.protocols.pca.sfpca import messages as common
from atoll.protocols.pca.sfpca.disclosure import ROW_COUNTS
from atoll.protocols.pca.sfpca.paper.messages import Estimates, VarianceUnit
from atoll.protocols.pca.sfpca.paper.parameters import DEALER, PaperParameters
from atoll.protocols.pca.sfpca.paper.releases import common_receivers, hidden_scores, openings
from atoll.protocols.pca.sfpca.parameters import COORDINATOR, VERTICAL, small_rows
from atoll.secret_matrices import messages as dealt
from atoll.secret_matrices import messages as seeds
from atoll.secret_matrices.slots import messages as machine
from atoll.secret_numbers import messages as numbers
from atoll.study.model import Study

_EVERYONE = (PROVIDER, COORDINATOR, CONSUMER)
_SCORES = "every row's projection: to the row's owner or, where islands hold columns, to those named"
OUTPUTS = {
    "components": Output(
        ("components", "offset", "columns"),
        _EVERYONE,
        "the principal components, and the offset, components times mean, that projects new rows",
    ),
    "explained_variance": Output(
        ("explained_variance", "total_variance", "noise_variance", "noise"),
        _EVERYONE,
        "how much variance each component explains, and the total",
    ),
    "n_samples": Output(("n_samples", "islands", "rows"), _EVERYONE, "the number of rows of each island"),
    "scores": Output(("scores",), (PROVIDER,), _SCORES),
    "certificate": Output(("certificate",), _EVERYONE, "one number that says how far the components hold"),
}

_INTERVALS = (
    "what the island with most rows tells of a simulation on its own rows: powers of two between which the "
    "numbers lie that square roots are taken of, for every step of the algorithm, and powers of two near the "
    "leading variances. They say these numbers, of the joint table and so of that island's rows, to a factor "
    "of four or so; nothing hides them"
)
_LENGTHS = (
    "what the island with most rows tells of a simulation on its own rows: powers of two near the lengths of "
    "the algorithm's rows and near the leading variances. They say these numbers, of the joint table and so "
    "of that island's rows, to a factor of two or so; nothing hides them"
)
_TAU = (
    "one number that says how far the components hold; if they do not, the run ends without any, and the "
    "number says how far off they were"
)
_HIDDEN = (
    "encrypted numbers and parts of keys, which say nothing as long as one provider keeps its part of the "
    "key to itself"
)
_LAST = (
    "all providers but one, if they work together with the coordinator, know their own rows: what the "
    "outputs say beyond these is about the last island's"
)
_ACTIVE = (
    "everybody is taken to follow the protocol: a coordinator that had the providers refresh one ciphertext "
    "of its own making would have their whole keys from the answers, because masks are bounded, and one that "
    "had another ciphertext opened would read it; that other providers were sent the same is checked, that "
    "it is what the program makes is not (verify = true checks it)"
)
_VERIFIED = (
    "providers compute all that the coordinator computes, of sums that they check, and answer for nothing "
    "else: a coordinator that sends other numbers ends the run before anything is opened, unless a provider "
    "helps it. Providers are taken to follow the protocol"
)
_COMMON = (
    "a row's scores are made of all islands' columns: with the components, an island can take its own part "
    "away and has the others'; all providers but one know the columns of the last, if it has {k} or fewer, "
    "up to a linear map, row by row"
)
_LISTED = (
    "components and variances carry noise of scale {scale:g} from a public list that all providers shuffle "
    "in turn (the paper's D.3): this is no differential privacy, and is booked as an exact release. No "
    "noise is larger than the list's ends, how far one row can move a component has no bound, the number "
    "that says how far the components hold carries none, and a provider that puts zeros on the list is not "
    "noticed"
)
_ASKING = (
    "a provider that asked the others to open a ciphertext of its own making in place of its scores would "
    "have their keys from the answers: nobody else can know what its scores are made of"
)


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    p = study.read_parameters(PaperParameters)
    tau = ("certificate",)
    return [
        *_columns(study),
        Disclosure(PROVIDER, "every island's number of rows", (common.RowCounts,), ROW_COUNTS),
        Disclosure(COORDINATOR, "every island's number of rows", (common.RowCount,), ROW_COUNTS),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        *_range(study, p),
        *_intervals(p),
        Disclosure(PROVIDER, _HIDDEN, (*_to_providers(p), *_keys_to_providers(study))),
        Disclosure(COORDINATOR, _HIDDEN, _TO_COORDINATOR),
        *_noise(study, p),
        Disclosure(PROVIDER, _TAU, (machine.SwitchedRow, machine.ReceiverSecret), tau),
        Disclosure(COORDINATOR, _TAU, (), tau),
        *_outputs(study),
        *_shares(study, p),
        *_dealt(p),
        *_caveats(study, p),
    ]


_TO_COORDINATOR = (
    seeds.SeedPart,
    machine.KeyPart,
    machine.SentRow,
    machine.RefreshPart,
    machine.SwitchingPart,
)


def _to_providers(p: PaperParameters) -> tuple[type[Message], ...]:
    rows = (machine.SumOfParts,) if p.paper.verify else (machine.GivenRow, machine.AskedRow)
    noise = () if p.paper.noise is None else (machine.ListRow,)
    return (seeds.SessionSeed, machine.OthersKeyPart, machine.KeyTotal, *rows, *noise)


def _noise(study: Study, p: PaperParameters) -> list[Disclosure]:
    """Of the list from which noise is drawn (D.3)."""
    if p.paper.noise is None:
        return []
    roles = sorted(
        {a.role for output in ("components", "explained_variance") for a in study.receivers(output)}
    )
    listed = Disclosure(
        COORDINATOR, "encrypted numbers of noise, in an order that nobody knows", (machine.ListRow,)
    )
    return [listed, *(Disclosure(role, _LISTED.format(scale=p.paper.noise.scale)) for role in roles)]


def _keys_to_providers(study: Study) -> tuple[type[Message], ...]:
    """Keys for outputs that not every provider is given, and halves of rows that others want to read."""
    circles = [receivers for _, _, receivers in openings(study, 1)]
    circles += [among] if (among := common_receivers(study)) else []
    apart = any(not {str(a) for a in study.who(PROVIDER)} <= receivers for receivers in circles)
    keys: tuple[type[Message], ...] = (machine.ReceiverKey,) if apart else ()
    return (*keys, machine.OwnRow) if hidden_scores(study) else keys


def protection(study: Study) -> Protection:
    """How contributions travel, and what goes through the secure sum."""
    p = study.read_parameters(PaperParameters)
    words = (
        "What islands contribute of their records travels encrypted under a collective key. Every island "
        "keeps a part of what opens it, and nobody can read it while one of them keeps its part to itself. "
        "The coordinator has no part. Nothing is opened but what “Who learns what” lists."
    )
    return Protection(words, "" if p.bounds is not None else "the range of the data")


def _dealt(p: PaperParameters) -> list[Disclosure]:
    """What a threshold means for who must not work together."""
    if p.threshold is None:
        return []
    words = (
        f"a share of the outputs, random by itself: any {p.threshold} providers who put theirs together have "
        "them, whomever they are released to; everything else still takes all of them"
    )
    done = "who waits for no share any more"
    masked = () if p.paper.verify else (machine.PublicShare,)
    hidden = "numbers under masks, and shares that are random by themselves"
    said = [
        Disclosure(PROVIDER, words, (dealt.DealtShare, Compared)),
        Disclosure(COORDINATOR, done, (common.Finished,)),
    ]
    if p.paper.nonlinear == "chebyshev":
        said += [Disclosure(PROVIDER, hidden, masked), Disclosure(COORDINATOR, hidden, (machine.SharePart,))]
    return said


def _shares(study: Study, p: PaperParameters) -> list[Disclosure]:
    """Of the steps on shares (D.1)."""
    if p.paper.nonlinear == "chebyshev":
        return []
    hidden = "numbers under masks, and shares that are random by themselves"
    dealers = study.who(DEALER)
    public = () if p.paper.verify else (machine.PublicShare,)
    supply = (numbers.DealerSeed, numbers.Remainder) if dealers else (numbers.Factors, numbers.Supplied)
    said = [
        Disclosure(PROVIDER, hidden, (*public, machine.MaskedIntegers, numbers.MaskedShares, *supply)),
        Disclosure(COORDINATOR, hidden, (machine.SharePart, machine.InputPart)),
    ]
    if dealers:
        said += [
            Disclosure(
                DEALER, "how many random products are used, and nothing of the data", (numbers.Wanted,)
            ),
            Disclosure(PROVIDER, f"{dealers[0].party} {_TRUSTED}"),
        ]
    return said


_TRUSTED = (
    "deals random products and is trusted not to work together with any provider: it knows what hides the "
    "numbers that providers exchange"
)


def _columns(study: Study) -> list[Disclosure]:
    own = Disclosure(COORDINATOR, "each island's column names", (handshake.Columns,), ("columns",))
    if study.partition == VERTICAL:
        words = "the names of all islands' columns, and whose they are"
        return [Disclosure(PROVIDER, words, (handshake.JoinedColumns,), ("columns",)), own]
    return [Disclosure(PROVIDER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)), own]


def _range(study: Study, p: PaperParameters) -> list[Disclosure]:
    if p.bounds is not None:
        return []
    method = secure_sums.chosen(study)
    what = "the smallest power of two that no value of any island exceeds"
    return [
        Disclosure(PROVIDER, method.contributors_see, method.to_contributors),
        Disclosure(PROVIDER, f"{what} (not opened where the study gives bounds)", (common.DataRange,)),
        Disclosure(COORDINATOR, what, method.to_receivers),
    ]


def _intervals(p: PaperParameters) -> list[Disclosure]:
    if p.paper.intervals is not None:
        return []
    told = _INTERVALS if p.paper.nonlinear == "chebyshev" else _LENGTHS
    return [Disclosure(role, told, (Estimates,)) for role in (PROVIDER, COORDINATOR)]


def _outputs(study: Study) -> list[Disclosure]:
    said, p = [], study.read_parameters(PaperParameters)
    for output, words, kinds in (
        ("components", "the principal components, and their product with the mean of each column", ()),
        ("explained_variance", "explained and total variance", (VarianceUnit,)),
        ("n_samples", "every island's number of rows", (SampleCount, common.RowCounts)),
        ("certificate", "one number that says how far the components hold", ()),
    ):
        for role in sorted({a.role for a in study.receivers(output)}):
            if role == CONSUMER:
                more = (common.Names,) if output == "components" else ()
                opened = () if output == "n_samples" else _opened_to_consumers(study, output)
                if p.threshold is not None and output in ("components", "explained_variance"):
                    opened = (dealt.ReleasedPoint,)
                said.append(Disclosure(role, words, (*kinds, *more, *opened)))
            elif output in ("components", "explained_variance"):
                values = VARIANCES if output == "explained_variance" else ()
                rows: tuple[type[Message], ...] = (machine.SwitchedRow,) if role == PROVIDER else ()
                rows = rows if p.threshold is None else (dealt.ReleasedPoint,)
                said.append(Disclosure(role, words, rows, values))
    if study.partition == VERTICAL and study.receivers("scores"):
        words = "the projections of the rows that all islands have in common"
        said.append(Disclosure(PROVIDER, words, (machine.SwitchedRow,)))
    elif hidden_scores(study):
        said.append(Disclosure(PROVIDER, "the projections of its own rows", (machine.OwnPart,)))
    elif study.receivers("scores"):
        said.append(Disclosure(PROVIDER, "the projections of its own rows"))
    return said


def _opened_to_consumers(study: Study, output: str) -> tuple[type[Message], ...]:
    """Rows, and the secret that receivers share, unless the first of them is the one who drew it."""
    alone = all(a.role == CONSUMER for a in study.receivers(output)) and output != "certificate"
    shared = not alone or len(study.receivers(output)) > 1
    return (machine.SwitchedRow, machine.ReceiverSecret) if shared else (machine.SwitchedRow,)


def _caveats(study: Study, p: PaperParameters) -> list[Disclosure]:
    said = [Disclosure(PROVIDER, _LAST), Disclosure(PROVIDER, _VERIFIED if p.paper.verify else _ACTIVE)]
    if p.bounds is None:
        said.append(
            Disclosure(
                PROVIDER,
                "all providers but one, if they work together with the coordinator, can work out the power "
                "of two that the last island's own values do not exceed",
            )
        )
    if study.partition != VERTICAL:
        few = small_rows(p.n_components)
        said.append(
            Disclosure(
                PROVIDER,
                "the components say most about an island that has hardly any rows, or far larger values; "
                f"islands with fewer than {few} rows are named in a warning",
            )
        )
    if common_receivers(study):
        said.append(Disclosure(PROVIDER, _COMMON.format(k=p.n_components)))
    if hidden_scores(study):
        said.append(Disclosure(PROVIDER, _ASKING))
        said.append(
            Disclosure(
                PROVIDER,
                "an island with more independent rows than columns can solve its scores for components and "
                "offset: they stay hidden from small islands only",
            )
        )
    return said
