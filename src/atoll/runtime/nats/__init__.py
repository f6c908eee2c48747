"""Runs across machines, over NATS: parties, the hub between them, and what survives a crash of either.

- :mod:`carrier`: what moves sealed frames between parties, and promises nothing else; one in this process
- :mod:`connection`: one connection to a hub: TLS, a login by key, errors that say what to do
- :mod:`subjects`: what is called how on the hub, and what a party asks of the hub's agent
- :mod:`nats_carrier`: the carrier over NATS: frames through a hub, for as long as it takes
- :mod:`certificates`: the hub's own authority, and what it signs
- :mod:`hub_config`: what a hub knows, and the server's configuration that follows from it
- :mod:`agent`: makes and opens inboxes, redeems invitations
- :mod:`invitations`: one string that lets one site join a hub, once
- :mod:`hub`: made once, run by its server and agent, changed while it runs
- :mod:`hub_status`: who is at a hub, who is connected, what waits for whom
- :mod:`directory`: public identities as the hub has them, checked against fingerprints
- :mod:`site`: one site's folder: keys, partners, proposals, runs
- :mod:`starts`: how a run starts: a signed proposal, an approval from every party
- :mod:`policy`: which studies a site takes part in
- :mod:`keys`: keys of one run: for every pair, direction and start
- :mod:`wire`: frames: what travels between two parties, sealed
- :mod:`channel`: what one party knows of another: lanes, starts, acknowledgements
- :mod:`state`: where a party stands, as its journal says
- :mod:`sending`: the sending half of a link; :mod:`hearing`: the receiving half
- :mod:`link`: the thread that moves frames, greets, and ends
- :mod:`network`: the network and the record of one role
- :mod:`party`: one party's part of a run, from its journal if there is one
"""
