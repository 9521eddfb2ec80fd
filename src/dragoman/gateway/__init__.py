"""The walk of one request: from a client's bytes to an upstream and back."""
