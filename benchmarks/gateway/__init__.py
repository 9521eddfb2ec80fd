"""The gateway as a process on one core, compared with the smallest translator, a forwarder, and LiteLLM's proxy."""
