"""Thirteen scenarios between a client and a model, as data: requests, replies and results."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from dragoman.simulator import Answer, Received
from dragoman.simulator import Call as Made
from end_to_end.talk import Result, Tool, VendorTool

SYSTEM = "You are brief."
IMAGE = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
THOUGHT = "They want the weather — I must look it up."
CITY = 'Zürich "Süd"\n\\ 東京'


def _object(**properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(properties)} if properties else schema


WEATHER = Tool("get_weather", "Tell the weather in a city.", _object(city={"type": "string"}))
TIME = Tool("get_time", "Tell what time it is.", _object())


class Scenario(Struct, frozen=True, kw_only=True):
    """One thing that happens."""

    name: str
    prompt: str
    answer: Answer
    """What the model says first; what it says to results is its own, and quotes them."""
    tools: tuple[Tool, ...] = ()
    choice: str = "auto"
    thinks: bool = False
    forgets: bool = False
    """The client keeps only the text and the calls of an answer."""
    results: tuple[Result, ...] = ()
    is_cached: bool = False
    """The second turn reads the first from the vendor's prompt cache."""
    quoted: str = ""
    """What the answer to the results must quote."""
    vendor_tools: Mapping[str, VendorTool] = {}
    """The tool that each client declares, if its API has one; then the answer is a call of it."""
    vendor_tool: VendorTool | None = None
    """The tool that this client declares."""

    def has(self, client: str) -> bool:
        """Return whether the client's API has what the scenario is about."""
        return not self.vendor_tools or client in self.vendor_tools

    def select(self, client: str) -> "Scenario":
        """Return the scenario as this client plays it."""
        tool = self.vendor_tools.get(client)
        if tool is None:
            return self
        answer, results = _calls((tool.name, tool.arguments)), (Result(value=tool.result),)
        return structs.replace(self, vendor_tool=tool, answer=answer, results=results)


def _calls(*made: tuple[str, dict[str, Any]], thought: str = "") -> Answer:
    calls = tuple(Made(id=f"{at:024x}", name=name, arguments=given) for at, (name, given) in enumerate(made, 1))
    return Answer(calls=calls, thought=thought, end="calls")


_WARM = Result(value={"temperature": 72, "unit": "F"})
_COLD = Result(value={"temperature": 41, "unit": "F"})

_ANTHROPIC_SHELL = VendorTool(
    declaration={"type": "bash_20250124", "name": "bash"},
    name="bash",
    parameters=frozenset({"command", "restart"}),
    arguments={"command": "uname -s"},
    result="Linux",
    text="Linux",
)
_OPENAI_SHELL = VendorTool(
    declaration={"type": "shell", "environment": {"type": "local"}},
    name="shell",
    parameters=frozenset({"commands", "timeout_ms", "max_output_length"}),
    arguments={"commands": ["uname -s", "ls /none"], "timeout_ms": 5000},
    result=[
        {"stdout": "Linux\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        {"stdout": "", "stderr": "no such file", "outcome": {"type": "exit", "exit_code": 2}},
    ],
    text="Linux\n[exit code 0]\nno such file\n[exit code 2]",
)

SCENARIOS = (
    Scenario(name="text", prompt="Who are you?", answer=Answer(text='I am "nobody" — 誰でもない.\nReally.')),
    Scenario(
        name="one call",
        prompt="What is the weather in that odd place?",
        tools=(WEATHER,),
        answer=_calls(("get_weather", {"city": CITY})),
    ),
    Scenario(
        name="parallel calls",
        prompt="What is the weather in Paris and in Tokyo?",
        tools=(WEATHER,),
        answer=_calls(("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Tokyo"})),
        results=(_COLD, _WARM),
        quoted="72",
    ),
    Scenario(
        name="call with no arguments",
        prompt="What time is it?",
        tools=(TIME,),
        answer=_calls(("get_time", {})),
        results=(Result(value={"time": "11:45"}),),
        quoted="11:45",
    ),
    Scenario(
        name="result turn",
        prompt="What is the weather in Tokyo?",
        tools=(WEATHER, TIME),
        answer=_calls(("get_weather", {"city": "Tokyo"})),
        results=(_WARM,),
        quoted="72",
    ),
    Scenario(
        name="failed result",
        prompt="What is the weather in Atlantis?",
        tools=(WEATHER,),
        answer=_calls(("get_weather", {"city": "Atlantis"})),
        results=(Result(value="there is no such city", failed=True),),
        quoted="no such city",
    ),
    Scenario(
        name="image in result",
        prompt="What is the weather in Rome, with a picture?",
        tools=(WEATHER,),
        answer=_calls(("get_weather", {"city": "Rome"})),
        results=(Result(value={"temperature": 72, "unit": "F"}, image=IMAGE),),
        quoted="72",
    ),
    Scenario(
        name="reasoning + call",
        prompt="Think about the weather in Oslo.",
        tools=(WEATHER,),
        thinks=True,
        answer=_calls(("get_weather", {"city": "Oslo"}), thought=THOUGHT),
        results=(_COLD,),
        quoted="41",
    ),
    Scenario(
        name="reasoning across tool calls",
        prompt="Think about the weather in Bonn and in Kiel.",
        tools=(WEATHER,),
        thinks=True,
        forgets=True,
        answer=_calls(("get_weather", {"city": "Bonn"}), ("get_weather", {"city": "Kiel"}), thought=THOUGHT),
        results=(_WARM, _COLD),
        quoted="41",
    ),
    Scenario(
        name="prompt caching",
        prompt="What is the weather in Cairo? " + "Think of the desert, the river and the sea. " * 150,
        tools=(WEATHER,),
        answer=_calls(("get_weather", {"city": "Cairo"})),
        results=(_WARM,),
        quoted="72",
        is_cached=True,
    ),
    Scenario(
        name="vendor tool run by the client",
        prompt="Which system is this?",
        answer=Answer(),
        vendor_tools={"messages": _ANTHROPIC_SHELL, "responses": _OPENAI_SHELL},
        quoted="Linux",
    ),
    Scenario(
        name="named tool_choice",
        prompt="Hello there.",
        tools=(WEATHER, TIME),
        choice="get_weather",
        answer=_calls(("get_weather", {"city": "Bern"})),
    ),
    Scenario(
        name="none",
        prompt="What is the weather in Lima?",
        tools=(WEATHER,),
        choice="none",
        answer=Answer(text="I may not look."),
    ),
)

_BY_PROMPT = {scenario.prompt: scenario for scenario in SCENARIOS}


def script(received: Received) -> Answer | None:
    """Answer as the scenario of the prompt defines; the model itself answers results."""
    turns = received.request.turns
    if any(turn.results for turn in turns):
        return None
    scenario = next((_BY_PROMPT[turn.text] for turn in turns if turn.text in _BY_PROMPT), None)
    if scenario is None:
        return None
    names = {tool.name for tool in received.request.tools}
    client = next((client for client, tool in scenario.vendor_tools.items() if tool.name in names), "")
    return scenario.select(client).answer
