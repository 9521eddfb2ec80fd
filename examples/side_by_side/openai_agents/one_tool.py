from agents import Agent, Runner, function_tool


@function_tool
def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sun in {city}."


agent = Agent(name="Weather", model="gpt-5.2", tools=[get_weather])
print(Runner.run_sync(agent, "What is the weather in Oslo?").final_output)
