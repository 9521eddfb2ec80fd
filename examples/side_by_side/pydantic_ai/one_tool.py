from pydantic_ai import Agent


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sun in {city}."


agent = Agent("openai:gpt-5.2", tools=[get_weather])
print(agent.run_sync("What is the weather in Oslo?").output)
