"""What the roles of SF-PCA learn, in plain words."""

from __future__ import annotations

from atoll import secure_sums
from atoll.network import Compared
from atoll.protocols import handshake
from atoll.protocols.base import Disclosure, Protection
from atoll.protocols.pca.private_release import NOISY, PublicCentre
from atoll.protocols.pca.released import CONSUMER, PROVIDER, ROW_COUNT, VARIANCES, SampleCount, Variances
from atoll.protocols.pca.sfpca import messages
from atoll.protocols.pca.sfpca.digits import bits_of
from atoll.protocols.pca.sfpca.parameters import (
    COORDINATOR,
    DIRECT_MARGIN,
    VERTICAL,
    SFPCAParameters,
    small_rows,
)
from atoll.protocols.pca.sfpca.recipes.covariance import OPENED_SKETCH
from atoll.protocols.pca.sfpca.recipes.strict import OVERSAMPLING
from atoll.protocols.pca.sfpca.scores import score_owners
from atoll.secret_matrices import messages as machine
from atoll.study.model import Study

ROW_COUNTS = (*ROW_COUNT, "rows")
_LAST_ISLAND = (
    "all providers but one, if they work together with the coordinator, can work out the last island's total "
    "variance and, with the offset, its projected mean"
)
_LAST_UNOPENED = (
    "all providers but one, if they work together with the coordinator, know their own rows: what the "
    "components say beyond these is about the last island's, and the offset gives its projected mean"
)
_STANDARDISED = (
    "a run that is refused because columns hardly vary within their range shows how far these fall short, "
    "added up, not which they are; no variance, mean or standard deviation of a column is opened"
)
_SCALES_FROM_SCORES = (
    "scores that an island has solved give the components in the columns' own units; these give the columns' "
    "standard deviations, with the standardised components or where k(k+1)/2 reaches the number of columns"
)


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    p = study.read_parameters(SFPCAParameters)
    said = [
        *_columns(study),
        *set_up(ahead=_ahead(p)),
        *(_range(study, p) if p.epsilon is None else _centre(study)),
    ]
    for role in (PROVIDER, COORDINATOR):
        said += _openings(role, p) if not p.hides_spectrum else _bit(role, p)
    said += _outputs(study, p) + _all_components(study, p) + _dealt(p)
    if p.epsilon is not None:
        return said + _private_caveats(p)
    caveats = _column_caveats if study.partition == VERTICAL else _caveats
    return said + _kept(study) + _common_caveats(p) + caveats(study, p)


def protection(study: Study) -> Protection:
    """How contributions travel, and what goes through the secure sum."""
    p = study.read_parameters(SFPCAParameters)
    words = (
        "What islands contribute of their records travels encrypted under a collective key, or hidden under "
        "random numbers. Every island keeps a part of what opens it, and nobody can read it while one of "
        "them keeps its part to itself. The coordinator has no part. Nothing is opened but what “Who learns "
        "what” lists."
    )
    if p.epsilon is not None:
        return Protection(words, "the private centre")
    return Protection(words, "" if p.bounds is not None else "the range of the data")


def _columns(study: Study) -> list[Disclosure]:
    own = Disclosure(COORDINATOR, "each island's column names", (handshake.Columns,), ("columns",))
    if study.partition == VERTICAL:
        words = "the names of all islands' columns, and whose they are"
        return [Disclosure(PROVIDER, words, (handshake.JoinedColumns,), ("columns",)), own]
    return [Disclosure(PROVIDER, "the agreed column names", (handshake.AgreedColumns,), ("columns",)), own]


def _ahead(p: SFPCAParameters) -> bool:
    """Whether second halves of products travel ahead; with ``auto``, tables of many columns send them too."""
    return p.standardize or p.hides_spectrum or p.recipe not in ("auto", "direct")


def set_up(*, ahead: bool = False) -> list[Disclosure]:
    """What row counts, keys and products show."""
    hidden = (
        "encrypted numbers and parts of keys, which say nothing as long as one provider keeps its part of "
        "the key to itself"
    )
    return [
        Disclosure(PROVIDER, "every island's number of rows", (messages.RowCounts,), ROW_COUNTS),
        Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)),
        Disclosure(
            PROVIDER,
            hidden,
            (
                machine.SessionSeed,
                machine.AllKeyParts,
                machine.EncryptedMatrix,
                machine.SecondHalves,
                machine.MaskedTotal,
            ),
        ),
        Disclosure(
            PROVIDER,
            "check numbers of what the others sent and were sent: with them, a coordinator that tells two "
            "providers different things, or adds up wrongly, is found out",
            (Compared,),
        ),
        Disclosure(COORDINATOR, "every island's number of rows", (messages.RowCount,), ROW_COUNTS),
        Disclosure(
            COORDINATOR,
            hidden + "; and numbers hidden under random ones, which say nothing either",
            (
                machine.SeedPart,
                machine.KeyParts,
                machine.EncryptedShare,
                machine.ProductPart,
                *((machine.SecondPart,) if ahead else ()),
                machine.MaskedShare,
            ),
        ),
    ]


def _range(study: Study, p: SFPCAParameters) -> list[Disclosure]:
    if p.bounds is not None:
        return []
    method = secure_sums.chosen(study)
    what = "the smallest power of two that no value of any island exceeds"
    what = f"of each column, {what}" if p.standardize else what
    return [
        Disclosure(PROVIDER, method.contributors_see, method.to_contributors),
        Disclosure(PROVIDER, f"{what} (not opened where the study gives bounds)", (messages.DataRange,)),
        Disclosure(COORDINATOR, what, method.to_receivers),
    ]


def _centre(study: Study) -> list[Disclosure]:
    method = secure_sums.chosen(study)
    return [
        Disclosure(PROVIDER, method.contributors_see, method.to_contributors),
        Disclosure(PROVIDER, "the private centre after each stage, and its radius; noisy", (PublicCentre,)),
        Disclosure(
            COORDINATOR,
            "for each stage of the private centre the sum over all islands with noise in it",
            method.to_receivers,
        ),
    ]


def spectrum_words(p: SFPCAParameters) -> str:
    """What the recipe opens."""
    if p.epsilon is not None:
        return "all eigenvalues of the noisy second moments (as many as columns)"
    matrix = "correlation matrix" if p.standardize else "covariance"
    all_ = f"all eigenvalues of the joint {matrix} (as many as columns)"
    certified, k = "and one number that certifies the accuracy", p.n_components
    if p.opens_all_eigenvalues:
        return all_ + _because(p)
    if k is None:
        return f"{all_}, {certified}"
    ritz = (
        f"{k + OVERSAMPLING} approximate eigenvalues (Ritz values), the leading ones of which are the "
        f"explained variances, {certified}"
    )
    if p.recipe == OPENED_SKETCH:
        ritz += (
            f"; and {k + OVERSAMPLING} numbers more, the eigenvalues of the Gram matrix of the secret "
            "sketch: all islands but one, if they work together, learn of each hidden direction a blurred "
            "length, a few bits, because they know most of the sketch; with many islands that is enough to "
            "confirm a guess of the covariance"
        )
    if p.opens_all_eigenvalues is None:
        few = f"if the tables have up to {p.direct_limit} columns, {all_}{_because(p)}"
        return f"{few}; if they have more, {ritz}"
    return ritz


def _because(p: SFPCAParameters) -> str:
    """Why the planner has all eigenvalues opened, where strict would open fewer numbers."""
    if p.recipe != "auto" or p.n_components is None or p.direct_limit <= p.n_components + DIRECT_MARGIN:
        return ""
    return f', because that is faster on {p.links.words()} and exact (spectrum = "ritz" forbids it)'


def _openings(role: str, p: SFPCAParameters) -> list[Disclosure]:
    kinds = (machine.OpenedMatrix, machine.PublicNumbers) if role == PROVIDER else (machine.OpenedShare,)
    total = "how many columns are not constant" if p.standardize else "the total variance"
    exact = "" if p.epsilon is not None else "; exact to about 16 digits"
    said = [
        Disclosure(role, total if p.epsilon is None else "the total variance, noisy", kinds, VARIANCES),
        Disclosure(role, spectrum_words(p) + exact, kinds, (*VARIANCES, "certificate")),
    ]
    if p.standardize and p.epsilon is None:
        least = "too little to be standardised"
        if p.least_deviation is not None:
            least = f"by less than {p.least_deviation:g} of its largest value (least_deviation)"
        said.append(Disclosure(role, f"where a column varies {least}, how little; the run then ends", kinds))
    if p.retries:
        said.append(
            Disclosure(
                role,
                "if the first try turns out not to be accurate enough and is repeated: that it was, and its "
                "approximate eigenvalues",
            )
        )
    return said


def _bit(role: str, p: SFPCAParameters) -> list[Disclosure]:
    """All that is opened where the spectrum stays encrypted."""
    kinds = (machine.OpenedMatrix,) if role == PROVIDER else (machine.OpenedShare,)
    words = "one bit: whether the components are accurate; if not, the run ends without any"
    said = [Disclosure(role, words, kinds, ("certificate",))]
    if p.retries:
        words = "if the first try turns out not to be accurate enough and is repeated: that it was"
        said.append(Disclosure(role, words))
    return said


def _outputs(study: Study, p: SFPCAParameters) -> list[Disclosure]:
    said = []
    mean, noisy = ("the mean of each column", "") if p.epsilon is None else ("the private centre", NOISY)
    whose = "the rows that all islands have in common" if study.partition == VERTICAL else "its own rows"
    components = f"the principal components, and their product with {mean}"
    if p.standardize:
        components = "the principal components of the standardised columns; a column of zeros is constant"
    bits = bits_of(p)
    precise = (
        "" if bits is None else f" (to {bits} binary digits after the point; noise covers what is finer)"
    )
    share = machine.ReleasedShare if p.threshold is None else machine.ReleasedPoint
    for output, words, kinds in (
        ("components", components + precise, (share,)),
        ("scores", f"the projections of {whose}{precise}", (machine.ReleasedShare,)),
    ):
        for role in sorted({a.role for a in study.receivers(output)}):
            said.append(Disclosure(role, words, kinds))
    for output, words, kind in (
        ("components", "the column names", messages.Names),
        ("explained_variance", f"explained and total variance{noisy}", Variances),
        ("n_samples", "every island's number of rows", SampleCount),
        ("certificate", "how accurate the components are certified to be", messages.Certified),
    ):
        if any(a.role == CONSUMER for a in study.receivers(output)):
            more = (messages.RowCounts,) if output == "n_samples" else ()
            said.append(Disclosure(CONSUMER, words, (kind, *more)))
    return said


def _all_components(study: Study, p: SFPCAParameters) -> list[Disclosure]:
    """As many components as columns are an orthogonal matrix, which can be turned back; so can one fewer."""
    k, columns = p.n_components, p.columns
    if k is not None and columns is not None and k < len(columns) - 1:
        return []
    if p.hides_spectrum:
        return _all_directions(study, p)
    if columns is not None and k == len(columns) - 1:
        words = f"from all components but one, their variances and the total, it can work out {_matrix(p)}"
    elif k is None or columns is not None:
        words = f"all components {_inverted(p)}"
    else:
        words = (
            f"where the tables have no more than {k} columns, the components {_inverted(p)}; with one column "
            f"more, still {_matrix(p)}"
        )
    return [Disclosure(role, words) for role in _component_holders(study)]


def _all_directions(study: Study, p: SFPCAParameters) -> list[Disclosure]:
    """Nearly all components say in which directions columns are uncorrelated, whatever their variances."""
    words = (
        f"where the tables have up to {(p.n_components or 0) + 1} columns, all directions in which the "
        "columns are uncorrelated and, with as many components as columns and the offset, the columns' means"
    )
    return [Disclosure(role, words) for role in _component_holders(study)]


def _component_holders(study: Study) -> list[str]:
    """Roles that are given components, or can solve their scores for them."""
    holders = {a.role for a in study.receivers("components")}
    if score_owners(study) and study.partition != VERTICAL:
        holders.add(PROVIDER)
    return sorted(holders)


def _inverted(p: SFPCAParameters) -> str:
    mean = "" if p.epsilon is not None or p.standardize else " and, with the offset, the mean of each column"
    return f"give, with their variances, {_matrix(p)}{mean}"


def _matrix(p: SFPCAParameters) -> str:
    if p.epsilon is not None:
        return "all noisy second moments"
    return "the correlation matrix" if p.standardize else "the joint covariance"


def _dealt(p: SFPCAParameters) -> list[Disclosure]:
    """What a threshold means for who must not work together."""
    if p.threshold is None:
        return []
    words = (
        f"a share of components and offset, random by itself: any {p.threshold} providers who put theirs "
        "together have both, whomever they are released to; everything else still takes all of them"
    )
    done = "who waits for no share any more"
    return [
        Disclosure(PROVIDER, words, (machine.DealtShare, Compared)),
        Disclosure(COORDINATOR, done, (messages.Finished,)),
    ]


def _kept(study: Study) -> list[Disclosure]:
    if not study.receivers("encrypted"):
        return []
    enough = study.read_parameters(SFPCAParameters).threshold
    who = "all providers" if enough is None else f"any {enough} providers"
    words = f"a share of components and offset: random by itself; {who} and the coordinator, together, "
    return [Disclosure(role, words + "can open or use them later") for role in (PROVIDER, COORDINATOR)]


def _private_caveats(p: SFPCAParameters) -> list[Disclosure]:
    colluders = 0 if p.privacy is None else p.privacy.colluders
    said = f"more than {colluders} colluding providers know more of the noise than the study's epsilon"
    return [Disclosure(PROVIDER, f"{said} allows for")]


def _common_caveats(p: SFPCAParameters) -> list[Disclosure]:
    last = _LAST_UNOPENED if p.hides_spectrum else _LAST_ISLAND
    said = [
        Disclosure(
            PROVIDER,
            _STANDARDISED if p.standardize else last,
        ),
    ]
    if p.bounds is None:
        of = ", column by column" if p.standardize else ""
        said.append(
            Disclosure(
                PROVIDER,
                "all providers but one, if they work together with the coordinator, can work out the power "
                f"of two that the last island's own values do not exceed{of}",
            )
        )
    return said


def _column_caveats(study: Study, p: SFPCAParameters) -> list[Disclosure]:
    """What follows where islands hold columns of the same rows."""
    said = [
        Disclosure(
            PROVIDER,
            "components with their variances say how an island's columns vary together with all others', as "
            "far as they reach; an island's total variance is, where it has one column, that column's",
        )
    ]
    if study.receivers("scores"):
        k = p.n_components or "k"
        said.append(
            Disclosure(
                PROVIDER,
                "a row's scores are made of all islands' columns: with the components, an island can take "
                "its own part away and has the others'; all providers but one know the columns of the last, "
                f"if it has {k} or fewer, up to a linear map, row by row",
            )
        )
    return said


def _caveats(study: Study, p: SFPCAParameters) -> list[Disclosure]:
    """What follows where islands hold rows."""
    few = f"{small_rows(p.n_components or 1)} rows"
    if p.n_components is None:
        few += ", or than four more than twice the number of components,"
    shown = "the eigenvalues show an island that has a single row, up to the signs of its values"
    if p.hides_spectrum:
        shown = "the components say most about an island that has hardly any rows, or far larger values"
    said = [Disclosure(PROVIDER, f"{shown}; islands with fewer than {few} are named in a warning")]
    if score_owners(study):
        said.append(
            Disclosure(
                PROVIDER,
                "an island with more independent rows than columns can solve its scores for components and "
                "offset: they stay hidden from small islands only",
            )
        )
    if study.receivers("scores") and p.standardize:
        said.append(Disclosure(PROVIDER, _SCALES_FROM_SCORES))
    return said
