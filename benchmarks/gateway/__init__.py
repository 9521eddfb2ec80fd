"""The gateway as a process on one core, beside a program that only passes bytes on, and beside LiteLLM's proxy."""
