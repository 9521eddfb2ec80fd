"""What is seen of exchanges: counted, logged, kept for a while, and how many a key may have open."""
