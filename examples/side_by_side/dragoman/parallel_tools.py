import asyncio

from dragoman import Agent


async def get_weather(city: str) -> str:
    """Get the weather of a city."""
    await asyncio.sleep(0.1)
    return f"Sun in {city}."


agent = Agent("gpt-5.2", tools=[get_weather])
print(agent.run_sync("What is the weather in Oslo and in Rome?").text)
