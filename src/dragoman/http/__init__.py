"""HTTP/1.1 on sockets: a small server for the parts of Dragoman that listen. Knows nothing of LLMs."""
