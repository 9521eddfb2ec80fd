"""Upstreams: servers that host models, each with an address, credentials and a request envelope.

Translation is done in `dragoman.dialects`, not here.
"""
