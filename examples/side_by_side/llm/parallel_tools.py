import asyncio

import llm


async def get_weather(city: str) -> str:
    """Get the weather of a city."""
    await asyncio.sleep(0.1)
    return f"Sun in {city}."


async def main():
    model = llm.get_async_model("gpt-5.2")
    question = "What is the weather in Oslo and in Rome?"
    print(await model.chain(question, tools=[get_weather]).text())


asyncio.run(main())
