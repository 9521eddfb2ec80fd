"""Between a program and the Gemini API it asks: tools put into its requests, calls taken out of its replies.

Rules of this room: a leaf. Rules are pure and each stands alone; what is known of a session stands in one place; where
requests may go, and who may come in, is decided by who composes it.
"""
