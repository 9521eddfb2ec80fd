"""Adapt a request to another model of its own dialect: splice what that model rejects, keep every other byte.

The client wrote the request for one model, and the configuration maps its name to another. The parameters are adapted
by the traits that a translation uses, but only where the model rejects them as they are. Every change is reported. What
else a known server requires is in `server_edits`.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from msgspec import Raw, structs

from dragoman.core.parts import Text
from dragoman.core.problems import Problem
from dragoman.core.request import Message, Request, Sampling, Thinking, count_leading_systems
from dragoman.core.traits import Traits
from dragoman.dialects.record import Call, Dialect
from dragoman.dialects.registry import dialect_named
from dragoman.interpreter.adaptation import Adaptation, find_model_traits, strip_platform, traits_for
from dragoman.interpreter.foreign_fields import USUAL_VERBOSITY
from dragoman.interpreter.ledger import Ledger
from dragoman.interpreter.parameters import adapt_thinking, disable_in_tool_loop
from dragoman.interpreter.request_fields import adapt_sampling, find_max_tokens, thinks
from dragoman.interpreter.server_edits import (
    Edits,
    drop_parallel_setting,
    find_message_edits,
    find_server_edits,
    find_thinking_leftovers,
    takes_thinking,
)
from dragoman.interpreter.tool_choice import adapt_choice
from dragoman.interpreter.tools_cache import ToolsCache
from dragoman.interpreter.translation import TranslationTask
from dragoman.wire import array, json
from dragoman.wire.lookup import Document
from dragoman.wire.pointer import escape
from dragoman.wire.splice import edit

WRAPPED = "/request/"
"""The start of the pointers of fields inside an envelope."""
_LIMIT = "sampling.max_tokens"
_WHOLE = ("tool_choice", "verbosity")
_HIGHEST_EFFORTS = ("xhigh", "max")
_REMOVED, _CHANGED = "not sent: the model rejects the field", "changed to what the model accepts"
_ADDED = "added for the model"
_LAST_TURNS = 2
"""The messages that decide whether the request continues a tool loop."""
_SYSTEM_ROLES = ("system", "developer")


def adapt_to_model(task: TranslationTask, call: Call, ledger: Ledger, cache: ToolsCache) -> Call:
    """Return `call` as the task's model accepts it; the same if nothing must change or if it cannot be parsed.

    A call that is changed may have the name of that model already.
    """
    dialect, model = task.source, task.model
    try:
        shorter = _drop_history(call, dialect)
        request = dialect.parse_request(shorter, read_tools=lambda raw, where: cache.read(dialect, raw, where).tools)
    except (Problem, json.Malformed):
        return call  # the vendor reports what is wrong with it
    traits, is_known, has_server = _find_traits(dialect.name, model, task.server)
    adaptation = Adaptation(traits, ledger, dialect.issuer, model)
    adapted = _adapt_parameters(request, adaptation, has_server=has_server) if is_known else request
    edits = find_parameter_edits(request, adapted, shorter, traits, has_server=has_server)
    document = Document(shorter.body)
    if is_known:
        edits |= _find_refused_fields(adapted, document, traits, ledger)
        edits |= _find_cache_marks(call.body, dialect, traits, ledger)
    if has_server:
        if adapted.thinking is not request.thinking:
            edits |= find_thinking_leftovers(request, adaptation)
        edits |= find_server_edits(request, document, dialect, adaptation)
    _report_rest(edits, document, ledger)
    if has_server and (added := find_message_edits(call.body, dialect, adaptation)):
        _report_rest(added, Document(call.body), ledger)
        edits |= added
    body, name = call.body, call.model
    if edits:
        # The model's name too, because each edit reads the whole body.
        named = next((found[0] for pointer in dialect.pointers["model"] if (found := document.find(pointer))), None)
        if named is not None:
            edits[named], name = json.encode(model), model
        body = edit(body, edits)
    if adaptation.instructions:
        prompt = _add_instructions(body, request, adaptation, dialect)
        _report_rest(prompt, document, ledger)
        body = edit(body, prompt)
    return call if body is call.body else Call(body, name, call.stream)


def _report_rest(edits: Edits, document: Document, ledger: Ledger) -> None:
    """Report the edits that are no loss: a renamed field, a default value that is left out, a required field."""
    reported = [loss.where for loss in ledger.losses()]
    for where, raw in edits.items():
        if not any(where == pointer or where.startswith(f"{pointer}/") for pointer in reported):
            what = _REMOVED if raw is None else _CHANGED if document.find(where) is not None else _ADDED
            ledger.report_approximated(where, what, "informational")


def _drop_history(call: Call, dialect: Dialect) -> Call:
    """Return a request with only the last turns of its history: its parameters are read in every later step."""
    members, name = json.decode_object(Raw(call.body)), dialect.history
    history = members.get(name)
    if history is None or json.first_byte(history) != b"[":
        return call
    turns = json.decode_array(history)
    if len(turns) <= _LAST_TURNS:
        return call
    shorter = {**members, name: Raw(json.encode(turns[-_LAST_TURNS:]))}
    return Call(json.encode(shorter), call.model, call.stream)


@lru_cache(maxsize=1024)
def is_own_model(name: str, model: str) -> bool:
    """Return whether a model is of the families of the dialect's own vendor."""
    names = dialect_named(name).api.model_names
    return bool(names) and re.match(names, strip_platform(model)) is not None


@lru_cache(maxsize=1024)
def _find_traits(name: str, model: str, server: str) -> tuple[Traits, bool, bool]:
    """Return the traits of a model, whether anything is known of it, and whether its server is known.

    Nothing is known of a model that is neither of the vendor's families nor in the table: its server may accept what
    the strictest traits of the vendor do not.
    """
    dialect = dialect_named(name)
    of_model, found = find_model_traits(name, model), traits_for(name, model, "", server)
    has_server = found != of_model
    is_known = has_server or is_own_model(name, model) or of_model is not dialect.traits[-1][1]
    if found.reasoning_text:  # a compatible server: it takes more than the vendor's own models
        found = structs.replace(found, sampling=found.sampling | {"top_k"})
    # A request without a limit is the client's own error: its own vendor would reject it too.
    return structs.replace(found, max_tokens_default=None), is_known, has_server


def _adapt_parameters(request: Request, adaptation: Adaptation, *, has_server: bool) -> Request:
    traits, ledger, thinking, choice = adaptation.traits, adaptation.ledger, request.thinking, request.tool_choice
    adaptation.max_tokens = find_max_tokens(request.sampling, traits)
    if not _takes_thinking(request, adaptation, has_server=has_server):
        thinking = adapt_thinking(request, adaptation)
        if thinking is not None and thinking.mode == "adaptive" and request.thinking and not request.thinking.mode:
            thinking = structs.replace(thinking, mode=None)  # an effort needs no mode
    # Claude's manual thinking; compatible servers have a mode of that name too.
    is_manual = thinking is not None and thinking.mode == "enabled" and not traits.reasoning_text
    if thinking is not None and is_manual:
        thinking = disable_in_tool_loop(request.messages, thinking, request, ledger)
        is_manual = thinking.mode == "enabled"
    is_off = thinking is not None and thinking.mode == "disabled"
    adaptation.can_force = (traits.forced_choice and not is_manual) or (traits.forced_unthinking and is_off)
    if has_server and choice is not None and choice.parallel is not None and not traits.parallel_switch:
        choice = drop_parallel_setting(choice, adaptation)
    if choice is not None and choice.mode == "required" and not adaptation.can_force:
        choice = adapt_choice(choice, request.tools, request.tools, adaptation)
    verbosity = request.verbosity
    if verbosity is not None and not traits.verbosity:
        if verbosity != USUAL_VERBOSITY:
            ledger.report_dropped_field("verbosity", "the model has no such setting")
        verbosity = None
    return structs.replace(
        request,
        thinking=thinking,
        sampling=adapt_sampling(request.sampling, adaptation, thinking),
        tool_choice=choice,
        verbosity=verbosity,
    )


def _takes_thinking(request: Request, adaptation: Adaptation, *, has_server: bool) -> bool:
    """Return whether the model accepts the thinking settings as they are."""
    traits, thinking = adaptation.traits, request.thinking
    if traits.tools_need_no_effort and request.tools:
        return thinking is not None and thinking.effort == "none"
    if has_server and thinking is not None:
        return takes_thinking(thinking, traits)
    if thinking is None or (thinking.extras is not None and traits.reasoning_text):
        return True  # a compatible server knows the form that the client wrote
    mode, effort, budget = thinking.mode, thinking.effort, thinking.budget
    if mode == "disabled":
        has_high_effort = effort in _HIGHEST_EFFORTS or (effort is not None and effort not in traits.efforts)
        return (traits.thinking == "none" or traits.can_disable_thinking) and not has_high_effort
    styles = {traits.thinking, traits.older_thinking}
    is_shown = thinking.visible is not True or traits.shows_thinking
    if traits.thinking == "none" or not is_shown or (effort is not None and effort not in traits.efforts):
        return False
    if mode == "adaptive":
        return "adaptive" in styles
    if mode == "enabled":
        return "enabled" in styles and traits.budget_min <= (budget or 0) < adaptation.max_tokens
    if budget is None:
        return effort is None or "budget" not in styles
    if "budget" not in styles:
        return False
    if budget <= 0:
        return budget < 0 or traits.can_disable_thinking
    return traits.budget_min <= budget <= (traits.budget_max or budget)


def find_parameter_edits(
    request: Request, adapted: Request, call: Call, traits: Traits, *, has_server: bool = False
) -> Edits:
    """Return the edits after which the body has the adapted parameters."""
    dialect, fields = dialect_named(traits.dialect), _list_changed(request, adapted)
    if has_server and adapted.thinking is not request.thinking:
        # The server's members may have other names than the client's.
        fields |= {name for name in dialect.pointers if name.startswith("thinking.")}
    if has_server and "tool_choice" in fields:
        fields.add("tool_choice.parallel")
    # These have several names or values with one meaning in the core, of which the model may take only one.
    limits = [pointer for pointer in dialect.pointers[_LIMIT] if not pointer.startswith(WRAPPED)]
    if len(limits) > 1 and request.sampling.max_tokens is not None and not traits.takes_both_limits:
        fields.add(_LIMIT)
    if adapted.thinking is not None and adapted.thinking.mode == "disabled":
        fields.add("thinking.mode")
    if not fields:
        return {}
    is_wrapped = dialect.unwrap is not None and dialect.unwrap(call) is not None
    if not any(field.startswith("tool_choice") for field in fields):
        adapted = structs.replace(adapted, tools=(), tool_choice=None)
    before, after = Document(call.body), Document(_render_parameters(adapted, dialect, traits))
    edits: Edits = {}
    for pointer in (pointer for field in sorted(fields) for pointer in dialect.pointers.get(field, ())):
        if pointer.startswith(WRAPPED) != is_wrapped:
            continue
        old = before.find(pointer)
        new = after.find(pointer.removeprefix(WRAPPED[:-1]) if is_wrapped else pointer)
        if new is None:
            if old is not None and old[1] != b"null":
                edits[old[0]] = None
        elif old is None or json.peek(old[1]) != json.peek(new[1]):
            edits[old[0] if old is not None else before.spell(pointer)] = new[1]
    return edits


def _find_refused_fields(adapted: Request, document: Document, traits: Traits, ledger: Ledger) -> Edits:
    """Return the edits that remove other fields that the model rejects, and report each that has an effect."""
    edits: Edits = {}
    for field in traits.refused_fields:
        found = document.find(field.where)
        value = json.peek(found[1]) if found is not None else None
        if found is None or value in (None, [], {}) or value is False:
            continue
        if field.while_thinking and not thinks(adapted.thinking, traits):
            continue
        where = found[0]
        if field.item:
            items = json.as_list(value)
            if field.item not in items:
                continue
            where = f"{where}/{items.index(field.item)}"
        edits[where] = None
        ledger.report_dropped(where, _REMOVED, None if field.has_effect and value else "informational")
    return edits


def _find_cache_marks(body: bytes, dialect: Dialect, traits: Traits, ledger: Ledger) -> Edits:
    """Return the edits that remove cache marks from the history for a model of the vendor that rejects them."""
    name = dialect.pointers["part.cache"][0].removeprefix("/") if "part.cache" in dialect.pointers else ""
    if traits.cache_marks or traits.reasoning_text or not name or b'"%b"' % name.encode() not in body:
        return {}
    history = json.decode_object(body).get(dialect.history, Raw(b"null"))
    found = list(_find_members(json.decode(history), name, f"/{dialect.history}"))
    for where in found:
        ledger.report_dropped(where, _REMOVED)
    return dict.fromkeys(found)


def _find_members(value: Any, name: str, where: str) -> Iterator[str]:
    """Yield the pointers of the members of that name."""
    if isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _find_members(item, name, f"{where}/{index}")
    elif isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            if key == name:
                yield f"{where}/{escape(key)}"
            elif isinstance(member, list | dict):
                yield from _find_members(member, name, f"{where}/{escape(key)}")


def _list_changed(request: Request, adapted: Request) -> set[str]:
    """Return the names of the core fields that differ."""
    before, after = request.sampling, adapted.sampling
    changed = {
        f"sampling.{name}" for name in Sampling.__struct_fields__ if getattr(before, name) != getattr(after, name)
    }
    settings, new = request.thinking or Thinking(), adapted.thinking or Thinking()
    changed |= {
        f"thinking.{name}" for name in Thinking.__struct_fields__ if getattr(settings, name) != getattr(new, name)
    }
    return changed | {name for name in _WHOLE if getattr(request, name) is not getattr(adapted, name)}


def _render_parameters(request: Request, dialect: Dialect, traits: Traits) -> bytes:
    """Render only the parameters of a request, as the model spells them."""
    bare = Request(
        model="",
        messages=(),
        tools=request.tools if request.tool_choice is not None else (),
        tool_choice=request.tool_choice,
        sampling=request.sampling,
        thinking=request.thinking,
        verbosity=request.verbosity,
    )
    return dialect.render_request(bare, traits).body


def _add_instructions(body: bytes, request: Request, adaptation: Adaptation, dialect: Dialect) -> Edits:
    """Return the edit that adds instructions to the system prompt: a member of its own, or messages of the history."""
    text = Text(text="\n".join(adaptation.instructions))
    added = Message(role="system", parts=(text,))
    traits, history = adaptation.traits, dialect.history
    rendered = _render_messages((added,), dialect, traits)
    if history in rendered and (items := json.decode_array(rendered[history])):
        return _insert_message(body, bytes(items[0]), history)
    systems = request.messages[: count_leading_systems(request.messages)]
    before = _render_messages(systems, dialect, traits)
    after = _render_messages((*systems, added), dialect, traits)
    return {f"/{name}": bytes(raw) for name, raw in after.items() if bytes(before.get(name, b"")) != bytes(raw)}


def _insert_message(body: bytes, added: bytes, history: str) -> Edits:
    """Return the edit that inserts a message after the leading system messages."""
    value = bytes(json.decode_object(body)[history])
    items, count = json.decode_array(value), 0
    while count < len(items) and json.peek(json.decode_object(items[count]).get("role", b"null")) in _SYSTEM_ROLES:
        count += 1
    start = array.find_end_before(value, len(value) - 1, items[count:]) if count else 1
    separated = b"," + added if count else added + b"," if items else added
    return {f"/{history}": value[:start] + separated + value[start:]}


def _render_messages(messages: tuple[Message, ...], dialect: Dialect, traits: Traits) -> dict[str, Raw]:
    return json.decode_object(dialect.render_request(Request(model="", messages=messages), traits).body)
