import llm


def get_weather(city: str) -> str:
    """Get the weather of a city."""
    return f"Sun in {city}."


model = llm.get_model("gpt-5.2")
print(model.chain("What is the weather in Oslo?", tools=[get_weather]).text())
