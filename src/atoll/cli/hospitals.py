"""The demo's data: three hospitals that see different patients, and the study they agree on.

scikit-learn's breast-cancer table (569 tumours, 30 measurements) is cut by tumour size, as screening,
referral and specialist clinics would: unevenly and not at random, so that no hospital's own table looks
like the whole.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from sklearn.datasets import load_breast_cancer

LABEL = "diagnosis"
STUDY_FILE = "study.toml"
_SIZE = "mean radius"
_SHARES = {"coast-screening": 0.55, "valley-hospital": 0.30, "summit-oncology": 0.15}

STUDY = f"""\
# Three hospitals compute one PCA over all their patients; no message is about a single patient.
# Try:  atoll review {STUDY_FILE}
[study]
name = "tumours"
analysis = "pca"
protocol = "pppca"
secure_sum = "shares"
partition = "horizontal"

[parameters]
n_components = 5
standardize = true              # by the joint mean and deviation, computed securely
label = "{LABEL}"             # no feature; goes along with projections, where these are released

[[party]]
name = "coast-screening"
role = "provider"

[[party]]
name = "valley-hospital"
role = "provider"

[[party]]
name = "summit-oncology"
role = "provider"

[[party]]
name = "stats-office"
role = "server"

[[party]]
name = "university"
role = "consumer"

[release]                       # output -> roles or parties; anything not named stays inside
components = ["provider", "consumer"]
explained_variance = ["provider", "consumer"]
n_samples = ["consumer"]
# scores = ["consumer"]         # five numbers and the diagnosis of every patient: data about patients

[local]                         # where the data lie; not part of what is approved
data = {{ coast-screening = "coast-screening.csv", valley-hospital = "valley-hospital.csv", summit-oncology = "summit-oncology.csv" }}
"""  # noqa: E501


def hospitals() -> dict[str, pd.DataFrame]:
    """Each hospital's patients: the smallest tumours at the first, the largest at the last."""
    bunch = load_breast_cancer(as_frame=True)
    table = bunch.data.copy()
    table[LABEL] = bunch.target.map(dict(enumerate(bunch.target_names)))
    table = table.sort_values(_SIZE, kind="stable")
    parts, start = {}, 0
    for name, share in _SHARES.items():
        end = start + round(share * len(table))
        last = name == list(_SHARES)[-1]
        parts[name] = table.iloc[start : None if last else end].reset_index(drop=True)
        start = end
    return parts


def write_study(folder: Path) -> Path:
    """Every hospital's table and the study beside them; the study file's path."""
    for name, table in hospitals().items():
        table.to_csv(folder / f"{name}.csv", index=False)
    path = folder / STUDY_FILE
    path.write_text(STUDY, encoding="utf-8")
    return path
