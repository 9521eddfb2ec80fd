"""Wrong command lines and files, each with the part of the message that a user needs."""

from msgspec import Struct


class WrongInput(Struct, frozen=True):
    """A command line in a folder with some files, and what it must say."""

    command: str
    message: str
    code: int = 2
    given: bytes = b""
    """Standard input."""
    files: dict[str, bytes] = {}


CONFIG = "dragoman.toml"


def config(text: str, message: str, command: str = "config check") -> WrongInput:
    """A wrong configuration file in the working directory."""
    return WrongInput(command, message, files={CONFIG: text.encode()})


def translate(words: str, message: str, given: bytes = b"", code: int = 1, **files: bytes) -> WrongInput:
    """A document that cannot be translated."""
    return WrongInput(f"translate {words}", message, code, given, files)


STRONG_KEY = b"[server]\nkeys = ['sixteen-characters-or-more']"
A_FILE = {"a.json": b"{}"}
PAIR = "--from chat --to messages"
WRONG_INPUTS = (
    WrongInput("srve", "unknown command 'srve'; did you mean serve?"),
    WrongInput("zzz", "unknown command 'zzz'; use serve, mcp, translate, chat"),
    WrongInput("help", "unknown command 'help'; did you mean --help?"),
    WrongInput("--verbose", "unknown --verbose"),
    WrongInput("--port 1 serve", "unknown --port before the command; write the command first"),
    WrongInput("-- true", "this subcommand runs no other command; remove: -- true"),
    WrongInput("serve -- true", "this subcommand runs no other command; remove: -- true"),
    WrongInput("serve --prt 1", "unknown --prt 1; did you mean --port?"),
    WrongInput("serve --port 70000", "argument --port: must be a port from 0 to 65535, not '70000'"),
    WrongInput("serve --port http", "argument --port: must be a port from 0 to 65535, not 'http'"),
    WrongInput("serve --port 1 --listen 127.0.0.1:1", "argument --listen: not allowed with argument --port"),
    WrongInput("serve --listen here", "server.listen: must be HOST:PORT with a port up to 65535, not 'here'"),
    WrongInput("serve --listen 127.0.0.1:99999", "server.listen: must be HOST:PORT with a port up to 65535"),
    WrongInput("serve --listen 0.0.0.0:0", "0.0.0.0 is reachable from the network; add a key, or listen on 127.0.0.1"),
    WrongInput("serve --workers 0", "argument --workers: must be a whole number of 1 or more, not '0'"),
    WrongInput("serve --workers -3", "argument --workers: must be a whole number of 1 or more, not '-3'"),
    WrongInput("serve --workers two", "argument --workers: must be a whole number of 1 or more, not 'two'"),
    WrongInput("serve --workers", "argument --workers: expected one argument"),
    WrongInput("serve --config missing.toml", "missing.toml: cannot read the file: No such file or directory"),
    WrongInput("serve --config .", ".: cannot read the file: Is a directory"),
    WrongInput("serve --listen 192.0.2.1:0", "cannot listen on 192.0.2.1:0: Cannot assign", files={CONFIG: STRONG_KEY}),
    config("listen = 1", "dragoman.toml: listen: unknown table"),
    config("[servr]", "dragoman.toml: servr: unknown table: did you mean `server`?"),
    config("x", "dragoman.toml: not valid TOML"),
    WrongInput("config check", "dragoman.toml: not valid TOML: 'utf-8' codec", files={CONFIG: b"\xff"}),
    config("[server]\nlog_format = 'xml'", "server.log_format: Invalid enum value 'xml'"),
    config("[server]\nhold = 'long'", "server.hold: Expected `float`, got `str`"),
    config("[server]\nstrickt = true", "server: Object contains unknown field `strickt`: did you mean `strict`?"),
    config("[server]\nkeys = ['']", "server.keys[0]: the key is empty"),
    config("[server]\nkeys = ['sha256:12']", "server.keys[0]: a sha256 hash has 64 hexadecimal digits"),
    config("[server]\nkeys = ['env:NO_SUCH_VARIABLE']", "the environment variable NO_SUCH_VARIABLE is not set; set it"),
    config("[upstreams.a]\nkind = 'gemni'", "upstreams.a.kind: unknown kind 'gemni'; use one of gemini"),
    config("[upstreams.a]\nkind = 'gemini'", "upstreams.a.api_key: generativelanguage.googleapis.com requires a key"),
    config("[upstreams.'a b']\nkind = 'simulator'", "the name of an upstream may contain only letters"),
    config("[upstreams.v]\nkind = 'vertex-gemini'", "upstreams.v.project: required for this kind"),
    config("[models]\nfast = 'nowhere/m'", "models.\"fast\": unknown upstream 'nowhere'"),
    config("[models]\nfast = 'gemini-3-flash'", 'models."fast": \'gemini-3-flash\' must be "upstream/model"'),
    config("[models]\n'a*b*' = 'simulator/m'", "a pattern may contain only one `*`"),
    config("[tools.x]\ncommand = ['cat']", "tools.x.command: Expected `str`, got `array`"),
    config("[sessions]\nurl = 'mysql://x'", "sessions.url", command="serve --port 0"),
    WrongInput("config bogus", "invalid choice: 'bogus'"),
    WrongInput("config init", "dragoman.toml exists already; edit it", files={CONFIG: b""}),
    WrongInput("config init no/such/folder.toml", "cannot write the file: No such file or directory"),
    WrongInput("config hash-key", "the key is empty; pass a key on standard input, or use --new"),
    WrongInput("config hash-key", "the key is not UTF-8 text; pass one that is, or use --new", given=b"\xff"),
    WrongInput("config hash-key --old", "unknown --old"),
    translate("", "operation, --from and --to are required", code=2),
    translate("reqest --from chat --to messages", "invalid choice: 'reqest'", code=2),
    translate("request --from openai --to messages", "unknown dialect 'openai'", code=2),
    translate("request --from chat --to claude", "did you mean messages?", code=2),
    translate("request --from chat --to geminy", "did you mean gemini?", code=2),
    translate(f"request {PAIR}", "the request is empty: standard input has no text"),
    translate(f"request {PAIR} empty.json", "the request is empty: empty.json has no text", **{"empty.json": b" \n"}),
    translate(f"request {PAIR} none.json", "none.json: cannot open the file: No such file or directory", code=2),
    translate(f"request {PAIR} -o no/out.json", "no/out.json: cannot open the file", b"{}", code=2),
    translate(f"stream {PAIR}", "the stream is empty: standard input has no text"),
    translate(f"request {PAIR}", "invalid_request: Input data was truncated", b"{"),
    translate(f"request {PAIR}", "invalid_request: Expected `object`, got `array`", b"[]"),
    translate(f"request {PAIR}", "invalid_request: the JSON document is not UTF-8", b"\xff\xfe"),
    translate(f"request {PAIR} --status high", "argument --status: must be an HTTP status from 100 to 599", code=2),
    translate(f"request {PAIR} --status 1000", "argument --status: must be an HTTP status from 100 to 599", code=2),
    translate(f"request {PAIR} a.json b.json", "only one FILE can be given, which is a.json; remove b.json", code=2),
    translate(f"request {PAIR} a.json -o a.json", "a.json is also the input; name another file", code=2, **A_FILE),
    translate(f"response {PAIR} --request none", "argument --request: none: cannot open the file", b"{}", code=2),
    translate(f"response {PAIR}", "malformed_reply", b"{}"),
    WrongInput("mcp logn x", "invalid choice: 'logn'"),
    WrongInput("mcp login x", "tools.x: there is no [tools.x]"),
    WrongInput("chat", "standard input is empty; write one prompt a line, or use --once"),
    WrongInput("chat --once ''", "--once: the prompt is empty"),
    WrongInput("chat --tools a --no-tools", "argument --no-tools: not allowed with argument --tools"),
    WrongInput("doctor --model x", "'x' must be UPSTREAM/MODEL; the configured upstreams are simulator"),
    WrongInput("doctor --timeut 1", "unknown --timeut 1; did you mean --timeout?"),
    WrongInput("doctor --timeout 0", "argument --timeout: must be a positive number of seconds, not '0'"),
    WrongInput("intercept", "usage: dragoman intercept"),
    WrongInput(
        "intercept --listen here -- true", "server.listen: must be HOST:PORT with a port up to 65535, not 'here'"
    ),
    WrongInput("intercept replay none.json", "none.json: cannot read the file: No such file or directory"),
    WrongInput("simulate --port -1", "port must be a number from 0 to 65535, not -1"),
    WrongInput("simulate --fault often", "not a fault: 'often'; use a status from 400 to 599 or one of"),
    WrongInput("simulate --script none.py", "none.py"),
    WrongInput("simulate --recording none.jsonl", "none.jsonl: cannot read the file: No such file or directory"),
    WrongInput("completion tcsh", "invalid choice: 'tcsh'"),
)
