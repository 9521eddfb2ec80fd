"""The vendors' APIs, by name."""

from dragoman.simulator.api import Api
from dragoman.simulator.apis.chat import API as CHAT
from dragoman.simulator.apis.gemini import API as GEMINI
from dragoman.simulator.apis.messages import API as MESSAGES
from dragoman.simulator.apis.responses import API as RESPONSES

APIS: dict[str, Api] = {api.name: api for api in (CHAT, RESPONSES, MESSAGES, GEMINI)}
