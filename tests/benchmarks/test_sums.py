"""``atoll bench sums``: every method, with the time that its keys take."""

from __future__ import annotations

from atoll.bench.sums import bench_sums, forms


def test_the_key_time_of_every_encrypted_sum_is_counted() -> None:
    rows = {row.method: row for row in bench_sums(4, 3)}
    assert len(rows) == len(forms())
    for method in ("lattice key=collective", "lattice key=server", "paillier"):
        assert rows[method].note or rows[method].key_seconds > 0.0, method
    assert rows["shares"].key_seconds == 0.0
    assert all(row.exact for row in rows.values())
    assert "cannot lose 1" in rows["masks dropouts=1"].note
