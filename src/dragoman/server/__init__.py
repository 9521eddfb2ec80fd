"""The gateway as an HTTP server: who may come in, what each path means, what is answered."""
