"""What the gateway keeps of conversations: turns, conversations, signatures. The bytes are the clients' own."""
