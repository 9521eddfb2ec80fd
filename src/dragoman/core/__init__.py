"""The core: neutral values for requests, replies and stream events, between the parsers and renderers of the dialects.

Rules of this package: frozen values only, no I/O, no import from the rest of `dragoman`.
"""
