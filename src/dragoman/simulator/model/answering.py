"""The model: from everything an API was asked, to an answer.

It is small and honest. It calls the tools a prompt asks for, quotes what they answer, searches documents of its own,
fills the schema of an answer, and otherwise says that it is a simulator. The same ask and seed give the same answer.
"""

import hashlib

import msgspec
from msgspec.structs import replace

from dragoman.simulator.model import sayings
from dragoman.simulator.model.conversation import Conversation, read_conversation
from dragoman.simulator.model.filling.evidence import Evidence
from dragoman.simulator.model.filling.fit import fill_output
from dragoman.simulator.model.language.clauses import clause
from dragoman.simulator.model.limits import limited
from dragoman.simulator.model.planning import Planned, forced, plan
from dragoman.simulator.model.schemas.references import document, encoded
from dragoman.simulator.model.searching import Found, asks_for_search, asks_for_web, search
from dragoman.simulator.model.toolbox import Reading, read_tools
from dragoman.simulator.model.usage import PrefixMemory, usage_of
from dragoman.simulator.talk import Answer, Ask, Call, Tool

_ID_DIGITS = 24


def answer(ask: Ask, seed: int = 0, memory: PrefixMemory | None = None) -> Answer:
    """Answer an ask.

    `Call.id` is 24 hexadecimal digits, drawn from the seed and all that was said, so that no two calls of a
    conversation share one; an API puts its own prefix before it. An odd seed says a few words before it calls, an
    even one does not.
    """
    chance = seed + ask.seed
    conversation = read_conversation(ask.turns)
    said = _answered(ask, conversation, chance)
    said = limited(said, ask)
    return replace(said, usage=usage_of(ask, said, memory))


def _answered(ask: Ask, conversation: Conversation, chance: int) -> Answer:
    allowed = _allowed(ask)
    callable_tools = read_tools(tool for tool in allowed if tool.kind in {"function", "custom"})
    calls = _calls(ask, conversation, callable_tools)
    found = None
    if any(tool.kind == "search" for tool in allowed) and not conversation.results:
        found = _found(ask, conversation, calls)
    if found is not None:
        calls = []
    if calls:
        spoken = chance % 2 == 1 and ask.choice.mode != "required"
        text = sayings.before_calls(calls, conversation) if spoken else ""
        said = Answer(text=text, calls=_drawn(calls, ask, chance), end="calls")
    elif ask.output_schema is not None:
        said = Answer(text=_structured(ask.output_schema, conversation))
    elif conversation.results:
        said = Answer(text=sayings.from_results(conversation))
    elif found is not None:
        said = Answer(text=sayings.from_search(found), query=found.query, sources=found.sources)
    else:
        said = Answer(text=sayings.plain(conversation, chance))
    if not ask.thinks:
        return said
    return replace(said, thought=sayings.thought(conversation, calls, said.query))


def _allowed(ask: Ask) -> list[Tool]:
    if ask.choice.mode == "none":
        return []
    names = ask.choice.names
    return [tool for tool in ask.tools if not names or tool.name in names]


def _calls(ask: Ask, conversation: Conversation, tools: list[Reading]) -> list[Planned]:
    """Decide what to call now: what is asked for and was not called yet."""
    if not tools:
        return []
    planned = plan(conversation.prompt, tools)
    if conversation.calls:
        pending = _pending(planned, conversation.calls)
        if pending and conversation.results:
            told = plan(conversation.prompt, tools, conversation.known())
            pending = _pending(told, conversation.calls) if len(told) == len(planned) else pending
    else:
        pending = planned
    if not pending and ask.choice.mode == "required":
        pending = planned[:1] or [forced(conversation.prompt, tools, conversation.known())]
    return pending if ask.choice.parallel else pending[:1]


def _pending(planned: list[Planned], made: tuple[Call, ...]) -> list[Planned]:
    """Strike out what was called: the very call, or else one of the same tool, whatever it was told."""
    open_calls = list(planned)
    strange: list[Call] = []
    for call in made:
        place = next((at for at, one in enumerate(open_calls) if _is_same(one, call)), None)
        if place is None:
            strange.append(call)
        else:
            del open_calls[place]
    for call in strange:
        place = next((at for at, one in enumerate(open_calls) if one.tool.tool.name == call.name), None)
        if place is not None:
            del open_calls[place]
    return open_calls


def _is_same(planned: Planned, call: Call) -> bool:
    return planned.tool.tool.name == call.name and planned.arguments == call.arguments


def _found(ask: Ask, conversation: Conversation, calls: list[Planned]) -> Found | None:
    """Search, if no other tool is asked for; a prompt that names the web means the search."""
    prompt = conversation.prompt
    if not prompt.strip() or (calls and not asks_for_web(prompt)):
        return None
    if ask.output_schema is not None:
        return None
    found = search(prompt)
    return found if found.hit or ask.choice.mode == "required" or asks_for_search(prompt) else None


def _structured(schema: dict[str, object], conversation: Conversation) -> str:
    results = "\n".join(result.text[:2000] for result in conversation.results)
    told = clause(f"{conversation.prompt}\n{results}" if results else conversation.prompt)
    evidence = Evidence(told, (), conversation.known(), known_first=True)
    value = fill_output(document(encoded(schema)), evidence).value
    return msgspec.json.encode(value).decode()


def _drawn(planned: list[Planned], ask: Ask, chance: int) -> tuple[Call, ...]:
    """Give calls their ids."""
    said = hashlib.blake2b(str(chance).encode(), digest_size=_ID_DIGITS // 2)
    for turn in ask.turns:
        said.update(f"{turn.role} {turn.text}".encode(errors="replace"))
        for call in turn.calls:
            said.update(call.id.encode(errors="replace"))
        for result in turn.results:
            said.update(result.text.encode(errors="replace"))
    calls: list[Call] = []
    for place, call in enumerate(planned):
        own = said.copy()
        own.update(str(place).encode())
        calls.append(Call(id=own.hexdigest(), name=call.tool.tool.name, arguments=call.arguments))
    return tuple(calls)
