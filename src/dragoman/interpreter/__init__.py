"""Pure functions on core values: adapt a request to a target and its reply to the client, and report every loss."""
