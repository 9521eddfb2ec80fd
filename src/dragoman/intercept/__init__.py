"""Intercept a program's Gemini API requests: add tools to its requests, and take their calls out of the replies.

Two parties: the client is the intercepted program (such as Gemini CLI); the caller is the API user who adds tools and
gets their calls. Rules of this package: it is a leaf, imported only by the config, the server and the CLI. Rewrite
rules are pure and independent of each other; the state of a session is in one object (`InterceptSession`). The server
package decides where requests may go, and authorises the caller.
"""
