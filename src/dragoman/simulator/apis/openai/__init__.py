"""What both of OpenAI's APIs have in common: schemas, grammars, probabilities of tokens, headers."""
