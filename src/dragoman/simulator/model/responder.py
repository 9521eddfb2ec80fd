"""Answer a request in place of a model. It is not a model, and its answers say so.

It calls the tools a prompt requests, quotes their results, fills the schema of an answer, and otherwise replies that it
is a simulator. The same request and seed give the same answer.
"""

import hashlib
import re

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.simulator.apis.conversation import (
    Answer,
    AnswerEnd,
    AnswerSource,
    Call,
    ModelRequest,
    RequestResult,
    RequestTurn,
)
from dragoman.simulator.apis.usage import (
    CHARACTERS_PER_TOKEN,
    PromptCache,
    count_call_tokens,
    count_text_tokens,
    count_usage,
)
from dragoman.simulator.model.filler import fill
from dragoman.simulator.model.planner import PlannedCall, ToolCandidate, plan_calls, plan_forced_call, read_tools
from dragoman.simulator.model.prompt import Evidence, read_clause
from dragoman.simulator.model.schema import encode, load_schema

_PREFIX = "[dragoman simulator]"
_REPLY_TEMPLATES = (
    "I am a simulator and know nothing of my own. You said: “{}”",
    "This is an answer of a simulator, not of a language model. Your prompt was: “{}”",
    "No model has thought about this; a simulator repeats it: “{}”",
)
_SOURCES = (
    AnswerSource(url="https://example.org/search", title="About this search", quote="The simulator searches nothing."),
    AnswerSource(url="https://example.org/", title="Example", quote="Every search finds this page and another one."),
)
_SEARCHES = frozenset({"search", "google", "web", "internet", "online", "news", "latest"})
_COUNT = re.compile(r"\bcount\b.{0,20}?\b(?:from (-?\d{1,6}) )?to (-?\d{1,6})\b", re.IGNORECASE | re.DOTALL)
_WORDS = re.compile(r"\b(\d{1,5}) words\b", re.IGNORECASE)
_TAGGED = re.compile(r"<([a-z]{2,40}(?:[-_][a-z]{1,40}){1,4})>.{0,40000}?</\1>", re.DOTALL)
"""Tagged blocks that clients add to a prompt, such as reminders and the environment; they are not part of it."""
_MAX_HALF = 3000
"""The beginning and the end of a long prompt are read, because a request comes before or after a document."""
_LONGEST_QUOTE = 600
_MOST_COUNTED = 2000
_MOST_WORDS = 20_000


class PromptContext(Struct, frozen=True):
    """The end of a conversation: the last prompt, and the calls and results since."""

    prompt: str
    calls: tuple[Call, ...] = ()
    results: tuple[RequestResult, ...] = ()
    media: tuple[str, ...] = ()


def answer(request: ModelRequest, seed: int = 0, cache: PromptCache | None = None) -> Answer:
    """Answer a request.

    `Call.id` is 24 hexadecimal digits, derived from the seed and the conversation, so that it is unique in the
    conversation. With an odd seed, a few words precede a call.
    """
    seed += request.seed
    conversation = _read_context(request.turns)
    names, any_tool = request.choice.names, request.choice.mode != "none"
    allowed = [tool for tool in request.tools if any_tool and (not names or tool.name in names)]
    calls = _plan_calls(
        request, conversation, read_tools(tool for tool in allowed if tool.kind in {"function", "custom"})
    )
    query = ""
    if any(tool.kind == "search" for tool in allowed) and not conversation.results and request.output_schema is None:
        query = _find_query(request, conversation.prompt, calls)
        calls = [] if query else calls
    if calls:
        text = f"{_PREFIX} I call {_join_names(calls)}." if seed % 2 == 1 and request.choice.mode != "required" else ""
        draft = Answer(text=text, calls=_assign_ids(calls, request, seed), end="calls")
    elif request.output_schema is not None:
        draft = Answer(text=_fill_output(request.output_schema, conversation))
    elif query:
        quotes = " ".join(source.quote for source in _SOURCES)
        draft = Answer(text=f"{_PREFIX} I searched for “{query}”. {quotes}", query=query, sources=_SOURCES)
    else:
        draft = Answer(text=_write_text(conversation, seed))
    if request.thinks:
        draft = replace(draft, thought=_write_thought(conversation, calls, query))
    draft = _apply_limits(draft, request)
    return replace(draft, usage=count_usage(request, draft, cache))


def _read_context(turns: tuple[RequestTurn, ...]) -> PromptContext:
    """Find the last prompt and what followed it; text that comes with results belongs to the prompt before."""
    recent = turns[_find_prompt_start(turns) :]
    calls = tuple(call for turn in recent for call in turn.calls)
    names = {call.id: call.name for call in calls}
    results = (result for turn in recent for result in turn.results)
    users = [turn for turn in recent if turn.role == "user"]
    texts = [_keep_ends(turn.text, 3 * _MAX_HALF) for turn in users if turn.text.strip()]
    return PromptContext(
        _keep_ends("\n".join(_TAGGED.sub(" ", text).strip() or text for text in texts), _MAX_HALF),
        calls,
        tuple(replace(result, name=result.name or names.get(result.call_id, "")) for result in results),
        tuple(medium for turn in users for medium in turn.media),
    )


def _keep_ends(text: str, half: int) -> str:
    return text if len(text) <= 2 * half else f"{text[:half]}\n{text[-half:]}"


def _find_prompt_start(turns: tuple[RequestTurn, ...]) -> int:
    """Return the index of the last prompt; user text sent together with results belongs to the results."""
    start = 0
    prompt: int | None = None
    with_results = False
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            prompt, with_results = None, False
        elif turn.role == "user":
            with_results = with_results or bool(turn.results)
            if turn.text.strip() or turn.media:
                prompt = index
            if prompt is not None and not with_results:
                start = prompt
    return start


def _plan_calls(request: ModelRequest, conversation: PromptContext, tools: list[ToolCandidate]) -> list[PlannedCall]:
    """Return the requested calls that have not been made yet."""
    if not tools:
        return []
    planned = plan_calls(conversation.prompt, tools, _join_results(conversation))
    pending = _drop_completed(planned, conversation.calls)
    if not pending and request.choice.mode == "required":
        pending = planned[:1] or [plan_forced_call(conversation.prompt, tools)]
    return pending if request.choice.parallel else pending[:1]


def _drop_completed(planned: list[PlannedCall], calls: tuple[Call, ...]) -> list[PlannedCall]:
    """Drop the calls that were made: the same call, or else one of the same tool with any arguments."""
    pending = list(planned)
    for call in calls:
        same = [one for one in pending if one.tool.name == call.name]
        if same:
            pending.remove(next((one for one in same if one.arguments == call.arguments), same[0]))
    return pending


def _find_query(request: ModelRequest, prompt: str, calls: list[PlannedCall]) -> str:
    """Return the search query; empty if the prompt requests another tool, or no search."""
    clause = read_clause(prompt)
    asks = not _SEARCHES.isdisjoint(clause.words)
    if not prompt.strip() or (calls and not asks) or not (asks or "?" in prompt or request.choice.mode == "required"):
        return ""
    return (clause.find_topic(_SEARCHES) or prompt.strip())[:_LONGEST_QUOTE]


def _fill_output(output_schema: dict[str, object], conversation: PromptContext) -> str:
    schema = load_schema(encode(output_schema))
    evidence = Evidence(read_clause(f"{conversation.prompt}\n{_join_results(conversation)}"))
    return msgspec.json.encode(fill(schema, evidence, require_object=not schema.root).value).decode()


def _join_results(conversation: PromptContext) -> str:
    return "\n".join(result.text[:_MAX_HALF] for result in conversation.results if not result.failed)[: 2 * _MAX_HALF]


def _assign_ids(planned: list[PlannedCall], request: ModelRequest, seed: int) -> tuple[Call, ...]:
    digest = hashlib.blake2b(str(seed).encode(), digest_size=12)
    for turn in request.turns:
        parts = [turn.role, turn.text, *(call.id for call in turn.calls), *(result.text for result in turn.results)]
        digest.update(" ".join(parts).encode(errors="replace"))
    calls: list[Call] = []
    for number, call in enumerate(planned):
        own = digest.copy()
        own.update(str(number).encode())
        calls.append(Call(id=own.hexdigest(), name=call.tool.name, arguments=call.arguments))
    return tuple(calls)


def _write_text(conversation: PromptContext, seed: int) -> str:
    """Answer without a call."""
    lines = list(map(_quote_result, conversation.results))
    if not lines and (conversation.prompt.strip() or not conversation.media):
        lines.append(_write_reply(conversation.prompt.strip(), seed))
    if conversation.media:
        lines.append(f"I cannot see what you showed me ({', '.join(dict.fromkeys(conversation.media))}).")
    return f"{_PREFIX} " + ("\n" if conversation.results else " ").join(lines)


def _write_reply(prompt: str, seed: int) -> str:
    """Count, write the requested number of words, or repeat the prompt."""
    if found := _COUNT.search(prompt):
        start, end = int(found[1] or 1), int(found[2])
        step = 1 if end >= start else -1
        return ", ".join(map(str, range(start, end + step, step)[:_MOST_COUNTED]))
    if found := _WORDS.search(prompt):
        wanted = min(int(found[1]), _MOST_WORDS)
        words = " ".join(source.quote for source in _SOURCES).split()
        return " ".join((words * (wanted // len(words) + 1))[:wanted])
    return _REPLY_TEMPLATES[seed % len(_REPLY_TEMPLATES)].format(_shorten(prompt))


def _quote_result(result: RequestResult) -> str:
    text = _shorten(result.text.strip()) or "(nothing)"
    return f"{result.name or 'the tool'} {'failed' if result.failed else 'says'}: {text}"


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rstrip() + " …"


def _join_names(calls: list[PlannedCall]) -> str:
    return " and ".join(dict.fromkeys(call.tool.name for call in calls))


def _write_thought(conversation: PromptContext, calls: list[PlannedCall], query: str) -> str:
    asked = f"The user says: “{' '.join(conversation.prompt.split())[:160]}”."
    if not calls:
        return f"{asked} I search for “{query}”." if query else f"{asked} No tool is needed, so I answer myself."
    guessed = [name for call in calls for name in call.guessed]
    unsure = f" Nothing is said about {', '.join(guessed)}, so I guess." if guessed else ""
    return f"{asked} I need {_join_names(calls)}.{unsure}"


def _apply_limits(draft: Answer, request: ModelRequest) -> Answer:
    """Cut an answer at its first stop sequence or its last token, whichever comes first."""
    left = None if request.max_tokens is None else max(0, request.max_tokens) - count_text_tokens(draft.thought)
    if left is not None and left < 0:
        thought = draft.thought[: CHARACTERS_PER_TOKEN * max(0, request.max_tokens or 0)]
        return _cut_answer(replace(draft, thought=thought), "", "length")
    stops = [(place, -len(stop), stop) for stop in request.stop if stop and (place := draft.text.find(stop)) >= 0]
    place, _, stop = min(stops, default=(len(draft.text), 0, ""))
    if stop and (left is None or count_text_tokens(draft.text[:place]) <= left):
        return _cut_answer(draft, draft.text[:place], "stop", stop)
    if left is None or count_text_tokens(draft.text) + sum(map(count_call_tokens, draft.calls)) <= left:
        return draft
    return _cut_answer(draft, draft.text[: CHARACTERS_PER_TOKEN * left], "length")


def _cut_answer(draft: Answer, text: str, end: AnswerEnd, stopped_by: str = "") -> Answer:
    """Return an answer that ends early: it has no calls, and only the sources it still quotes."""
    sources = tuple(source for source in draft.sources if source.quote in text)
    return replace(draft, text=text, calls=(), end=end, stopped_by=stopped_by, sources=sources)
