"""Conversations that the gateway keeps: a request that only says what is new is completed, and its answer is saved."""
