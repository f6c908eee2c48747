"""The dashboard: a local page over a site's folder, for whoever decides what the site takes part in.

- :mod:`guard`: who may ask: the holder of the token, from this very page, on this machine
- :mod:`views`: what the pages show, as plain data
- :mod:`reports`: reports of finished runs
- :mod:`pages`: the pages, rendered
- :mod:`app`: which address shows or does what
- :mod:`serve`: the server, on this machine's loopback only
"""
