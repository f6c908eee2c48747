"""Runs: engines, what they keep, and what comes out.

- :mod:`learned`: what each role learned, as it is shown
- :mod:`transcript`: what a run cost: messages, bytes, rounds, seconds
- :mod:`inbox`: everything that reached a role, in the order in which it came
- :mod:`records`: what a role drew, kept or played back
- :mod:`engine`: what an engine is
- :mod:`local`: the engine that runs all roles in this process
- :mod:`engines`: the engines by name
- :mod:`replay`: one role again, from its record and its inbox
- :mod:`result`: what a study released, and the file that holds it
- :mod:`entries`: what stands in a journal
- :mod:`journal`: what a party keeps of a run, to go on after a crash
- :mod:`aligned`: tables whose rows an earlier alignment put in order
- :mod:`studies`: study files as runs need them: checked, with the islands' data
- :mod:`rehearsal`: rows that nobody has, in a table's own columns and types
- :mod:`execute`: run a study, and hand the caller what it may have
- :mod:`doctor`: what this machine has of what runs need
- :mod:`nats`: runs across machines
"""
