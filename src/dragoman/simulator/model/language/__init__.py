"""How the model reads a prompt: words, facts (numbers, places, paths, …) and clauses."""
