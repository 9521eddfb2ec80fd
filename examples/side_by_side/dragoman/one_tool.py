from dragoman import Agent


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sun in {city}."


agent = Agent("gpt-5.2", tools=[get_weather])
print(agent.run_sync("What is the weather in Oslo?").text)
