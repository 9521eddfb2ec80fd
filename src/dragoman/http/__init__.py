"""HTTP/1.1 server and client on asyncio. Contains nothing specific to LLMs."""
