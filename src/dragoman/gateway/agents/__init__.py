"""Tools that the gateway runs itself, beside those of its clients."""
