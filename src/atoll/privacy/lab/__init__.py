"""What only tests, benchmarks and reproduction use: :mod:`rehearsal`, :mod:`audit`, :mod:`joint_moments`."""
