"""Paths beside those that ask a model: lists, stored answers, conversations, Code Assist's own, other endpoints."""
