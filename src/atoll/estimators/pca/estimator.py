"""``atoll.PCA``: principal components across islands, with scikit-learn's names.

What differs from protocol to protocol is the adapter's (:mod:`atoll.estimators.pca.adapter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.data.island import Island, as_islands
from atoll.errors import ParameterError
from atoll.estimators.base import all_named, beside_islands, named_elsewhere, run, warn_of_missing
from atoll.estimators.pca.adapter import Adapter
from atoll.estimators.pca.by_island import Islands
from atoll.estimators.pca.model import Model
from atoll.estimators.pca.registry import adapter_of
from atoll.estimators.pca.tables import take_table, with_plan
from atoll.estimators.privacy_options import accounts, booked
from atoll.protocols.base import MIN_ISLANDS
from atoll.protocols.own import Own
from atoll.runtime.execute import Run
from atoll.study.model import Study


class PCA(Islands, Model):
    """Principal component analysis of a table whose rows (or columns) lie on several islands.

    Parameters
    ----------
    n_components : int, float or None
        How many components; a share of the variance between 0 and 1; or None for all.
    protocol : "pppca", "dpdpca", "sfpca", "privatelocal", "meta" or "separate"
        How the islands work together: by secure sums (PPPCA); the same with differential privacy and a
        proxy (DPDPCA); on encrypted data (SF-PCA); or one of three baselines, of which "privatelocal" is
        private too.
    secure_sum : "shares", "masks", "paillier", "lattice" or "mix"
        How sums are hidden: additive shares; pairwise masks that survive ``dropouts``; Paillier
        encryption under the server's key; lattice encryption under a ``key`` that is "collective"
        (shared by all islands) or the "server"'s; segments under layers of encryption that every island
        strips and shuffles, with the options ``mix``.
    partition : "horizontal" or "vertical"
        Islands hold rows, or (with "sfpca") different columns of the same rows, in the same order.
    standardize : bool
        Divide every column by its joint standard deviation.
    epsilon, delta : float, optional
        Differential privacy, with "dpdpca", "pppca" or "sfpca": everything released is made from noisy
        sums. Without delta the privacy is pure.
    row_norm : float
        With epsilon: a public bound on the Euclidean norm of a row; longer rows are cut to it. With
        "sfpca", ``bounds`` may take its place.
    rows : "normalise" or "clip"
        With epsilon: around the private centre every row counts with length one, or is cut at a
        privately chosen radius. "clip" keeps a little more from some 5,000 rows on, and less below 2,000.
    neighbours : "add-remove" or "replace"
        With epsilon: whether the presence of a row is hidden, or only its content. Numbers of rows are
        public in "sfpca", where it is always "replace".
    calibration : "analytic" or "paper"
        With "dpdpca": noise whose guarantee holds, or the published form, which is not private as stated.
    noise : "distributed" or "local"
        Every owner adds a share of the noise, or the whole of it. With ``calibration="paper"``: "gaussian",
        "laplace" or "wishart", made by the proxy.
    colluders : int
        How many owners may use their own noise shares against the others.
    assume_centered : bool
        With epsilon: the mean is known to be zero (with "sfpca", the middle of ``bounds``). Nothing is spent
        on it, and the components are those of rows as they are.
    centre : "mean" or "pairs"
        With epsilon and "dpdpca" or "pppca": part of the budget buys a private mean, around which rows
        count; or every island draws its rows into pairs, whose differences of length one count, and nothing
        is spent on a mean. "pairs" needs no ``row_norm``. It suits small tables, small epsilons and a
        ``row_norm`` that is far wider than the rows. Declare ``Island.from_array(X, capacity=...)`` for less
        noise with "add-remove" neighbours.
    ledger : path, Ledger or True, optional
        Where each island's releases are booked under its identity: a ledger that is there, or True for the
        site's (``atoll ledger init`` makes it, ``atoll ledger set-budget`` says what may be spent). Without
        it nothing is booked, and ``result_.booked`` says so; ``privacy_spent_`` is then this fit's alone.
    dropouts : int
        How many islands may leave during the first sum (``secure_sum="masks"``).
    mix : mapping, optional
        Options of ``secure_sum="mix"``: ``form`` ("onion", "elgamal"), ``segments``, ``parallel``, ``blind``.
    variant : "fast" or "paper"
        SF-PCA: "paper" runs Algorithm 1 with the paper's own routines, on ciphertexts with slots. It takes
        minutes to hours where "fast" takes seconds, opens no spectrum, and is there to compare with.
    paper : mapping, optional
        With ``variant="paper"``, the paper's letters: ``p``, ``alpha``, ``w``, ``degree``, ``method``
        ("precomp", "seq"), ``qr`` ("qr", "dqr"), ``xi``, ``margin``, ``intervals``, ``tolerance``,
        ``seed``, ``verify``; without a seed ``random_state`` seeds the public sketch.
    recipe : "auto", "direct", "strict", "fast", "accurate" or "opened-sketch"
        How SF-PCA finds the components: "direct" for few columns (all eigenvalues are learned), "strict"
        for many; "fast" and "accurate" are strict with fewer or more power iterations. "opened-sketch" is
        strict in three fifths of the rounds; it opens as many numbers more as there are Ritz values.
        "auto" chooses: up to 128 columns by what is forecast to be faster; all but "direct" and "accurate"
        try once more accurately where the certificate refuses.
    eigen : "masked" or "encrypted"
        SF-PCA: "masked" opens Ritz values or all eigenvalues, and the total variance. "encrypted" opens
        nothing but whether the components are accurate: there are no variances, it takes seven times as many
        rounds or more, and needs ``bounds``.
    spectrum : "auto" or "ritz"
        SF-PCA: "ritz" forbids recipes that open all eigenvalues.
    release : "components", "scores" or "encrypted"
        SF-PCA: components to all islands and the caller; or only each island's own projections to it; or
        nothing: every role keeps a share, and ``encrypted_`` projects rows or opens the components later.
    bounds : number, (low, high), one such pair for each column, or a mapping from columns to pairs
        SF-PCA: the public range of the data. Without it, the power of two that no value exceeds is opened.
        With epsilon, rows outside the ball around this box are cut to it.
    least_deviation : float, optional
        SF-PCA, standardised: what you know of every column that is not constant: its standard deviation is
        at least this part of its largest magnitude (with ``bounds``, of half their width). 0.05 saves three
        rounds in ten; a table that varies less is refused.
    threshold : int, optional
        SF-PCA: how many islands are enough to release components (or to use them later, with
        release="encrypted") once all products are done; as many together can open these outputs for
        themselves. None: all islands are needed, to the end.
    digits : int or "full", optional
        SF-PCA: bits of components, offset and scores that are released (26); noise covers what is finer.
    accept_determined : bool
        Release outputs also where they say all second moments, as nearly all components do, and fewer
        where columns hold whole numbers. Refused otherwise; ``atoll review`` says where the line is.
    between_means : bool
        With "meta": whether what sets the islands' means apart counts. Not by default: meta-analyses leave
        it out.
    columns : list of str, optional
        The columns to use, of tables that have others too.
    label : str, optional
        A column that is no feature; :meth:`plot_projection` marks rows by it.
    categorical : list of str, optional
        With "pppca", "dpdpca" or "sfpca": columns that hold categories. Each becomes one column of zeros and
        ones for every level that occurs on any island; their names are told to all islands.
    levels : mapping from columns to lists, optional
        The levels of categorical columns, where they are public; needed with epsilon.
    missing : "refuse", "drop", "mean" or "allele frequency"
        With the same protocols: refuse tables with missing values; drop such rows; fill in the joint mean of
        the column, which all islands learn; the same for genotypes, refusing what is not 0, 1 or 2.
    flat : "ignore", "zeros" or "drop"
        Columns that are constant or empty on all islands together: not looked for; kept, an empty one as
        zeros; or dropped. ``table_["flat"]`` names them.
    whiten : bool
        Divide projections by their standard deviations, as scikit-learn's PCA does. Not where the variances
        are those of normalised rows (``epsilon`` with ``rows="normalise"`` or ``centre="pairs"``).
    engine : Engine, optional
        Where the roles run.

    With epsilon ``noise_`` says how much of the components is noise: ``noise_.angle`` and ``noise_.words()``.

    With ``centre="pairs"`` there is no ``mean_``: nobody knows it. ``transform`` then projects rows as they
    are: all scores are shifted by the same unknown amounts, and distances between them are right.

    With ``protocol="sfpca"`` there is no ``mean_``: it is not released. ``offset_`` (components times mean)
    takes its place, and gives it where there are as many components as columns. ``certificate_`` says how
    accurate the components are, and with ``release="scores"`` ``scores_`` holds each island's projections and
    there are no components; the largest projection on each is positive (in the study's own outputs,
    ``result_["scores"]``, signs are random in every run). With ``standardize=True`` nobody learns the
    columns' standard deviations: ``components_`` are those of the standardised columns, without ``offset_``
    and ``transform``; ``release="scores"`` gives projections.

    The remaining options belong to protocols that are chosen by name; one that cannot be used with the
    chosen protocol is an error.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        The principal axes; the largest entry of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : arrays
        As scikit-learn's; ``total_variance_`` and ``noise_variance_`` go with them.
    mean_, scale_ : arrays, or None where columns are not standardised
        What rows are shifted and divided by.
    n_samples_, n_features_in_, feature_names_in_, n_components_
        Sizes and names of the joint table.
    table_ : mapping
        Where tables were prepared: levels, the means that were filled in, and flat columns. Tables that are
        projected are prepared in the same way.
    learned_ : mapping from roles to what each learned
        By size; the values of released outputs are in ``result_``.
    transcript_ : Transcript
        Messages, bytes, rounds and seconds, role by role.
    result_ : Result
        Everything that was released, with the study; ``result_.save(path)`` writes a file.
    privacy_spent_ : mapping from islands to accounts
        With epsilon: where each data set stands.

    Examples
    --------
    >>> import atoll
    >>> from sklearn.datasets import load_wine
    >>> X = load_wine().data
    >>> pca = atoll.PCA(n_components=2, standardize=True).fit({"north": X[:50], "south": X[50:]})
    >>> pca.explained_variance_ratio_.round(3)
    array([0.362, 0.192])
    """

    def __init__(
        self,
        n_components: int | float | None = 2,
        *,
        protocol: str = "pppca",
        secure_sum: str = "shares",
        partition: str = "horizontal",
        standardize: bool = False,
        least_deviation: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        row_norm: float | None = None,
        rows: str = "normalise",
        neighbours: str = "add-remove",
        calibration: str = "analytic",
        noise: str = "distributed",
        colluders: int = 1,
        assume_centered: bool = False,
        centre: str = "mean",
        dropouts: int = 0,
        ledger: Any = None,
        variant: str = "fast",
        paper: Any = None,
        recipe: str = "auto",
        spectrum: str = "auto",
        eigen: str = "masked",
        release: str = "components",
        key: str = "collective",
        bounds: Any = None,
        mix: Any = None,
        threshold: int | None = None,
        digits: int | str | None = None,
        accept_determined: bool = False,
        between_means: bool = False,
        columns: Any = None,
        label: str | None = None,
        categorical: Any = None,
        levels: Any = None,
        missing: str = "refuse",
        flat: str = "ignore",
        whiten: bool = False,
        random_state: Any = None,
        engine: Any = None,
    ) -> None:
        self.n_components = n_components
        self.protocol, self.secure_sum, self.partition = protocol, secure_sum, partition
        self.standardize, self.least_deviation = standardize, least_deviation
        self.epsilon, self.delta, self.row_norm = epsilon, delta, row_norm
        self.rows, self.neighbours = rows, neighbours
        self.calibration, self.noise, self.colluders = calibration, noise, colluders
        self.assume_centered, self.centre = assume_centered, centre
        self.dropouts, self.ledger = dropouts, ledger
        self.variant, self.paper, self.release, self.mix = variant, paper, release, mix
        self.recipe, self.eigen, self.spectrum = recipe, eigen, spectrum
        self.key, self.bounds, self.digits, self.threshold = key, bounds, digits, threshold
        self.accept_determined, self.between_means = accept_determined, between_means
        self.columns, self.label, self.whiten = columns, label, whiten
        self.categorical, self.levels, self.missing, self.flat = categorical, levels, missing, flat
        self.random_state, self.engine = random_state, engine

    # ---- fitting ----

    def fit(self, islands: Any, y: Any = None) -> PCA:
        """Compute the joint components of ``islands``: a list or mapping of tables.

        On an engine across machines, a list of names: the tables stay where they are.
        """
        del y
        adapter = adapter_of(self.protocol, self.variant)
        adapter.check(self)
        unseen = named_elsewhere(islands, self.engine)
        islands, brought = ({}, {}) if unseen is not None else beside_islands(islands)
        tables = as_islands(islands) if unseen is None else unseen
        if len(tables) < MIN_ISLANDS:
            raise ParameterError(
                f"fit needs at least {MIN_ISLANDS} islands, got {len(tables)}",
                hint="fit([X1, X2, ...]); for one table use scikit-learn's PCA",
            )
        study = with_plan(self, adapter.study(self, tables))
        if unseen is not None:
            self._take(adapter, run(study, {}, self.engine))
        else:
            self._fit_here(adapter, study, tables, islands, brought)
        adapter.warn(self)
        if hasattr(self, "islands_"):
            warn_of_missing(tables, self.islands_)
        return self

    def _fit_here(
        self, adapter: Adapter, study: Study, tables: dict[str, Island], islands: Any, brought: dict[str, Own]
    ) -> None:
        """All roles where the tables are, with the ledgers of this process."""
        with booked(tables, self.ledger, named=isinstance(islands, Mapping), brought=brought) as own:
            with all_named(tables, study):
                self._take(adapter, run(study, own, self.engine))
            if adapter.is_private(self):
                self.privacy_spent_ = accounts(study, own)

    def _take(self, adapter: Adapter, finished: Run) -> None:
        """The fitted attributes, from what was released; nothing is left of an earlier fit."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self.result_ = finished.result
        self.transcript_ = finished.result.transcript
        self.learned_ = finished.learned
        adapter.take(self, finished)
        take_table(self, finished)
