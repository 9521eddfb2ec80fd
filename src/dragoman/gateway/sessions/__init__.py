"""Conversations that the gateway keeps: a request that only says what is new is made whole, and its answer is kept."""
