"""The gateway as a process on one core, beside the smallest translator, a forwarder, and LiteLLM's proxy."""
