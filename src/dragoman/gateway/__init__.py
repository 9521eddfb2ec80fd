"""Request handling: from a client's bytes to an upstream and back."""
