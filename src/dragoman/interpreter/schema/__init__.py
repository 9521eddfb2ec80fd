"""Convert tool schemas for each target, and restore the arguments of calls to the client's schema."""
