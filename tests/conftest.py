"""Shared set-up: a fixed, quick hypothesis profile, and no warning unseen."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A table measured by whoever runs the tests must not decide what they see.
os.environ["ATOLL_CALIBRATION"] = os.devnull + "/none"
# Nor must their ledger be read, and above all not written.
os.environ["ATOLL_HOME"] = os.devnull + "/none"

settings.register_profile(
    "atoll",
    deadline=None,
    max_examples=30,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("atoll")
