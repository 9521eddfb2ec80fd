"""Model Context Protocol: other people's servers as tools of ours (`client`), and ours as a server (`server`).

Rules of this room: the official SDK is an extra and slow to load, so `sdk` imports it before anything else does, and
what needs it is imported where it is used. What others send is untrusted: it becomes core values in `bridge`, and
nothing else.
"""
