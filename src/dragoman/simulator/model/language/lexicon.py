"""What the model knows of words: which say nothing, which say little, which mean the same, which name a kind of value.

Tables hold words as people write them and are read as stems.
"""

import re

from dragoman.simulator.model.language.words import stem


def _listed(text: str) -> list[str]:
    return text.split()


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, _listed(text)))


STOP_WORDS = frozenset(
    _listed(
        "a an the this that these those it its i me my mine you your yours we us our they them their he she his her "
        "him is are was were be been being am do does did done have has had can could will would shall should may "
        "might must and or but nor so if then than as of in on at to for from by with without about into over under "
        "between near please thanks thank hello hi hey ok okay yes no not don't doesn't what what's which who whom "
        "whose when where why how there here just also too very now any some all each both more most such only same "
        "other again i'd i'll i'm let's let want need like want tell give show know say up out off go going und oder "
        "der die das ein eine ist im wie was et le la les un une des du de en dans est y o el los las por para con "
        "que es il lo gli di da per"
    )
)
STOP = _stems(" ".join(STOP_WORDS))
"""Words that tell nothing about what is asked."""
LIGHT = _stems("get fetch retrieve return obtain find list show give tell make use call do tool function api data")
"""Verbs and nouns that nearly every tool has."""
WEAK = _stems(
    "create run execute update delete remove read write send add set open close search look check query lookup "
    "start stop new current information info details value number string text name file item result object"
)
"""Words that say what a tool does, but not with what."""
ANSWERING = _stems(
    "tell give show say summarize summarise explain answer reply report describe compare list write draft think "
    "thank thanks make let do use try help continue finish stop"
)
"""Verbs that ask for words of the model rather than for a tool."""
REPLYING = _stems("reply respond answer summarize summarise explain report describe provide return acknowledge")
"""Verbs with which, after an ask, somebody says how the answer shall be."""
OPENING = _stems(
    "play convert transfer turn dim remind schedule translate summarize describe explain compare plot draw calculate"
)
"""Verbs that begin a command and are never part of the name behind them."""
IMPERATIVE = frozenset(
    {"a", "an", "the", "this", "that", "these", "my", "me", "all", "some", "what", "with", "for", "it", "to", "us"}
)
"""A capital before one of these is that of a verb, not of a name."""
ASKING = _stems(
    "search google web internet online news latest recent current today find look lookup who what what's when "
    "where why how which source cite research"
)
"""Words by which a prompt asks for a search."""
WEB = _stems("web internet online google news latest")
PLACING = frozenset({"in", "at", "near", "around", "for", "from", "to", "of", "über", "à", "en", "em", "nach"})
LINKING = frozenset(
    {"is", "of", "to", "as", "be", "equals", "the", "a", "an", "should", "named", "called", "set", "at", "=", ":"}
)
DENYING = frozenset({"no", "not", "without", "don't", "never", "false", "off", "disable", "exclude", "skip"})

_SAME = (
    "multiply product multiplication",
    "weather temperature forecast hot cold warm rain rainy sunny snow wind climate",
    "weather wetter météo temps tiempo clima tempo погода 天气 天氣 天気 날씨 الطقس मौसम",
    "add sum plus total addition",
    "subtract minus difference subtraction",
    "divide division quotient",
    "calculate calculator compute computation math arithmetic evaluate",
    "delete remove erase drop destroy",
    "create make new insert",
    "directory folder dir",
    "mail email e-mail message",
    "search find lookup look query google research grep",
    "image picture photo draw illustration",
    "buy purchase order",
    "reserve book booking reservation",
    "flight fly plane airline",
    "translate translation übersetze traduire traduis traduce",
    "price cost quote stock ticker",
    "time clock hour uhrzeit heure hora",
    "command shell bash terminal execute run",
    "edit patch modify change apply fix replace",
    "remind reminder alarm timer",
    "event meeting appointment calendar schedule",
    "light lamp bulb dim brighten brightness",
    "distance far",
    "play listen song music",
)
CONCEPTS = {stem(word): group.split()[0] for group in reversed(_SAME) for word in group.split()}
"""Words that stand for the same thing, by the first of their group."""
_OPERATION = re.compile(r"\d\)?\s{0,3}([-+*/\u00d7\u00f7]|times|plus|minus|divided by|multiplied by|x)\s{0,3}\(?-?\d")
_SPOKEN = re.compile(r"(?<=\d)\s(times|plus|minus|divided by|multiplied by|x)(?=\s\d)")
_SIGNS = {"times": " *", "multiplied by": " *", "x": " *", "plus": " +", "minus": " -", "divided by": " /"}
_OPERATIONS = {
    "+": "add",
    "plus": "add",
    "*": "multiply",
    "\u00d7": "multiply",
    "x": "multiply",
    "times": "multiply",
    "multiplied by": "multiply",
    "/": "divide",
    "\u00f7": "divide",
    "divided by": "divide",
    "-": "subtract",
    "minus": "subtract",
}

_KINDS = {
    "url": "url uri link href website webpage endpoint page",
    "email": "email mail recipient cc bcc",
    "path": "path file filename filepath directory dir folder cwd notebook",
    "datetime": "datetime timestamp",
    "number": "latitude longitude lat lon lng amount",
    "date": "date day birthday deadline checkin checkout",
    "time": "time hour clock",
    "place": "city location place country town region state destination origin address airport venue area where "
    "departure arrival timezone",
    "code": "code command cmd script expression sql statement formula equation cell patch diff program",
    "id": "id key identifier sha uuid zip zipcode postcode isbn ticket",
    "name": "name person user username author artist customer owner company symbol ticker player team repo repository "
    "language lang currency genre title table model product",
    "query": "query question search keyword term topic prompt q pattern subject",
    "text": "text content message body description comment note summary input sentence paragraph answer thought reason",
}
PARAMETER_KINDS = {stem(word): kind for kind, line in reversed(_KINDS.items()) for word in line.split()}
"""What kind of value a parameter of this name holds."""

DIRECTIONS = {
    stem(word): labels
    for line, labels in (
        ("from origin source start departure since begin", frozenset({"from", "since"})),
        ("to destination target end arrival until recipient", frozenset({"to", "into", "until"})),
        ("name username", frozenset({"named", "called"})),
        ("title", frozenset({"titled", "called", "named"})),
        ("label", frozenset({"labelled", "labeled", "called", "named"})),
        ("subject topic", frozenset({"about", "on"})),
        ("message body content text", frozenset({"saying", "says", "say"})),
        ("author owner artist", frozenset({"by"})),
    )
    for word in line.split()
}
"""Words before a value that tell which parameter it is for."""
MONTHS = {name: number for number, name in enumerate(_listed("jan feb mar apr may jun jul aug sep oct nov dec"), 1)}
NUMBERS = {
    word: number for number, word in enumerate(_listed("two three four five six seven eight nine ten eleven twelve"), 2)
}
DAYS = _stems("today tomorrow yesterday tonight monday tuesday wednesday thursday friday saturday sunday")
COUNTRIES = frozenset(
    _listed(
        "argentina australia austria belgium brazil canada chile china colombia denmark egypt england finland france "
        "germany greece hungary iceland india indonesia ireland israel italy japan kenya korea mexico morocco "
        "netherlands nigeria norway peru poland portugal romania russia scotland singapore spain sweden switzerland "
        "thailand turkey uk ukraine usa vietnam california texas florida ontario"
    )
)
"""A place may be told with its country: "Paris, France" is one place."""


def operations(text: str) -> set[str]:
    """Return the stems of what a text wants done with numbers: "2 + 3" says "add" and "calculate"."""
    found = {stem(_OPERATIONS[sign]) for sign in _OPERATION.findall(text)}
    return found | {stem("calculate")} if found else found


def with_signs(text: str) -> str:
    """Write "15 multiplied by 4" with the sign for it."""
    return _SPOKEN.sub(lambda found: _SIGNS[found[1]], text)


def weight_of(name: str) -> float:
    """How much a stem tells."""
    if name in STOP:
        return 0.0
    if name in LIGHT:
        return 0.1
    return 0.3 if name in WEAK else 1.0
