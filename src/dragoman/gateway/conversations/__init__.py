"""Stored conversations: a request that sends only new items is completed from the store, and its reply is saved."""
