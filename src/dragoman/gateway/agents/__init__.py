"""Server-side tools: the gateway runs them itself, in addition to the tools of its clients."""
