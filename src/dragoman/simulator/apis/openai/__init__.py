"""What both of OpenAI's APIs have in common: words, checks, errors, models, schemas, headers."""
