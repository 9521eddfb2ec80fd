"""Pure functions between core values: fit a request to a target, fit its reply to the client, report every loss."""
