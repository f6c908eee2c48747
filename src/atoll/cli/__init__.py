"""The ``atoll`` command. Each command has a file of its own and imports what it needs when it runs.

- :mod:`console`: what all commands print, and how; :mod:`options`: options that several commands share
- :mod:`commands`: commands whose help is ours; :mod:`outputs`: the folder that a run writes
- :mod:`kept`: a result that could not be written there
- :mod:`progress`: the bar while it runs
- :mod:`review`: ``atoll review``; :mod:`run`: ``atoll run``; :mod:`check`: ``atoll check``
- :mod:`report`: ``atoll report``
- :mod:`hospitals`: the demo's data and its study; :mod:`comparison`: what its result is compared with
- :mod:`demo`: ``atoll demo``
- :mod:`init`: ``atoll init``; :mod:`inspect`: ``atoll inspect``; :mod:`completion`: ``atoll completion``
- :mod:`one_machine`: a hub and sites as processes here; :mod:`demo_network`: ``atoll demo --network``
- :mod:`hub`: ``atoll hub``
- :mod:`sites`: what commands about a site share; :mod:`identity`: ``atoll identity``
- :mod:`doctor`: ``atoll doctor``; :mod:`dashboard`: ``atoll dashboard``
- :mod:`node`: ``atoll node``; :mod:`study`: ``atoll study``; :mod:`receipt`: ``atoll receipt``
- :mod:`bench_paper`: some of its tables; :mod:`bench`: ``atoll bench``; :mod:`ledger`: ``atoll ledger``
- :mod:`app`: all commands together, and how the program ends
"""

from __future__ import annotations

from atoll.cli.app import main

__all__ = ["main"]
