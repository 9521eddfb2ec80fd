"""The session store: turns, conversations, runs and signatures. Items are kept as the bytes that clients sent."""
