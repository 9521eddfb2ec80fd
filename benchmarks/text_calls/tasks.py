"""The prompts, and the tools for them. Small enough for the simulator's model to understand in either mode."""

from typing import Literal

from msgspec import Struct

from dragoman.tools import Handler, tool

_DEGREES = {"Paris": 21, "Tokyo": 26, "Oslo": 9, "Rome": 28, "Cairo": 33, "Lima": 18}


class Task(Struct, frozen=True):
    """A question, and what its answer must hold."""

    prompt: str
    wanted: tuple[str, ...]


@tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> dict[str, str | int]:
    """Get the weather in a city.

    Args:
        city: the name of the city
        unit: the unit of the temperature
    """
    return {"city": city, "temperature": _DEGREES[city], "unit": unit}


@tool
def get_time(city: str) -> dict[str, str]:
    """Get the time in a city.

    Args:
        city: the name of the city
    """
    return {"city": city, "time": f"{_DEGREES[city] % 24:02}:30"}


TOOLS: tuple[Handler, ...] = (get_weather, get_time)  # pyright: ignore[reportAssignmentType]
TASKS = (
    *(Task(f"What is the weather in {city}?", (str(degrees),)) for city, degrees in _DEGREES.items()),
    *(Task(f"What is the time in {city}?", (f"{degrees % 24:02}:30",)) for city, degrees in _DEGREES.items()),
    Task("What is the weather in Paris and in Tokyo?", ("21", "26")),
    Task("What is the weather in Oslo and in Rome?", ("9", "28")),
    Task("What is the weather in Cairo and in Lima?", ("33", "18")),
    Task("What is the weather in Paris, Tokyo and Oslo?", ("21", "26", "9")),
    Task("Who are you?", ("simulator",)),
    Task("Say hello.", ("simulator",)),
)
