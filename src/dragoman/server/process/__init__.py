"""Processes that serve: one or several on one port, started, watched and stopped."""
