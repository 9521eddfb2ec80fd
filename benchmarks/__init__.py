"""How much a translation costs, as a multiple of merely reading and writing the same JSON."""
