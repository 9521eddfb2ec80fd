"""Checks a configuration as a user would: credentials, reachability, one tool call."""
