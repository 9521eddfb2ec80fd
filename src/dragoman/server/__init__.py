"""The gateway as an HTTP server: authorization, routes, request handlers, logs and metrics."""
