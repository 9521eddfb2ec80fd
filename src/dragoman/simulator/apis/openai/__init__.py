"""What both OpenAI APIs share: error texts, checks, errors, models, schemas, headers."""
