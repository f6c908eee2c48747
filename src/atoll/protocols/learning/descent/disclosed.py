"""Who learns what of a gradient descent."""

from __future__ import annotations

from atoll import secure_sums
from atoll.codec import Message
from atoll.network import Compared
from atoll.protocols.base import Disclosure, Protection
from atoll.protocols.handshake import AgreedColumns, Columns
from atoll.protocols.learning.columns.consent import PAIR, SPAN
from atoll.protocols.learning.columns.released import CommonRows, OwnPart, Rest
from atoll.protocols.learning.columns.table import Held, Joint
from atoll.protocols.learning.descent.algorithm1 import AllRows, Theta
from atoll.protocols.learning.descent.algorithm2 import Over, Scores
from atoll.protocols.learning.descent.scenarios import (
    CONSUMER,
    PROVIDER,
    SERVER,
    TRUSTED,
    InTheClear,
    WholeTable,
)
from atoll.protocols.learning.descent.settings import DescentParameters
from atoll.protocols.learning.rows import Fit, Model
from atoll.study.model import Study

INSTEAD = "or split the rows: then only sums over rows are opened"
_COMMON = ("n_samples", "islands")


def learns(study: Study) -> list[Disclosure]:
    """Who learns what, from which messages."""
    p = study.read_parameters(DescentParameters)
    said = _columns(study) if study.partition == "vertical" else _rows(study)
    said.append(Disclosure(PROVIDER, "whether the other islands were told the same", (Compared,)))
    if p.scenario == "CT":
        said.append(
            Disclosure(SERVER, f"every island's whole table ({TRUSTED})", (WholeTable,), ("model", "fit"))
        )
    elif p.scenario == "DT":
        said.append(Disclosure(SERVER, f"what every island adds, by itself ({TRUSTED})", (InTheClear,)))
    return said + _released(study)


def _sums(study: Study, opened: str) -> list[Disclosure]:
    if study.read_parameters(DescentParameters).scenario != "DU":
        return []
    method = secure_sums.chosen(study)
    return [
        Disclosure(PROVIDER, method.contributors_see, (*method.to_contributors, *method.to_adder)),
        Disclosure(SERVER, opened, method.to_receivers),
    ]


def _rows(study: Study) -> list[Disclosure]:
    said = [
        Disclosure(PROVIDER, "the agreed column names", (AgreedColumns,)),
        Disclosure(SERVER, "each island's column names", (Columns,)),
    ]
    if study.read_parameters(DescentParameters).scenario != "CT":
        said += [
            Disclosure(PROVIDER, "the number of rows of all islands together", (AllRows,), _COMMON),
            Disclosure(PROVIDER, "the model of every step, the last included", (Theta,), ("model",)),
        ]
    opened = "over all islands together: the number of rows, and every step's cost and gradient"
    if len(study.who(PROVIDER)) == 2:
        alone = "with two providers: each learns the other's number of rows, and its gradient at every model"
        said.append(Disclosure(PROVIDER, alone))
    everything = Disclosure(SERVER, "the model and the cost of every step", (), ("model", "fit", *_COMMON))
    return [*said, everything, *_sums(study, opened)]


def _columns(study: Study) -> list[Disclosure]:
    scenario = study.read_parameters(DescentParameters).scenario
    said = [
        Disclosure(PROVIDER, "the columns of all islands, and the number of rows", (Joint,), _COMMON),
        Disclosure(SERVER, "each island's column names, and the number of rows", (Held,), _COMMON),
    ]
    if scenario == "CT":
        return said
    said += [
        Disclosure(PROVIDER, "every step's summed score of every row", (Scores,), ("part", "fit")),
        Disclosure(SERVER, "when the descent is over", (Over,)),
        *(Disclosure(role, f"what the steps give away together: {SPAN}") for role in (PROVIDER, SERVER)),
    ]
    if len(study.who(PROVIDER)) == 2:
        said.append(Disclosure(PROVIDER, PAIR))
    also = ", and the intercept" if study.receivers("model") else ""
    return said + _sums(study, f"every step's summed score of every row{also}")


def _released(study: Study) -> list[Disclosure]:
    p = study.read_parameters(DescentParameters)
    split = study.partition == "vertical" and p.scenario != "CT"
    said = []
    for output, words in (
        ("model", "the whole model"),
        ("fit", "the cost of every step"),
        ("n_samples", "the number of rows, and which islands they belong to"),
    ):
        for role in dict.fromkeys(address.role for address in study.receivers(output)):
            messages = _messages(output, role, split)
            if messages:
                said.append(Disclosure(role, words, messages))
    return said


def _messages(output: str, role: str, split: bool) -> tuple[type[Message], ...]:
    if output == "n_samples":
        return (CommonRows,) if role == CONSUMER else ()
    if output == "fit":
        nothing = role == PROVIDER if split else role == SERVER
        return () if nothing else (Fit,)
    if not split:
        return () if role == SERVER else (Model,)
    return (OwnPart,) if role == SERVER else (OwnPart, Rest)


def protection(study: Study) -> Protection | None:
    """Nothing is protected where the server is trusted."""
    p = study.read_parameters(DescentParameters)
    return None if p.scenario == "DU" else Protection(f"Nothing is hidden from the server: {TRUSTED}.")
