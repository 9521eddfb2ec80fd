"""How arguments are filled: from what the prompt tells where it tells something, else with what the schema allows."""
