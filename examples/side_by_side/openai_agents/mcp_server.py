import asyncio

from agents import Agent, Runner
from agents.mcp import MCPServerStdio


async def main():
    command = {"command": "python", "args": ["weather_server.py"]}
    async with MCPServerStdio(params=command) as server:
        agent = Agent(name="Weather", model="gpt-5.2", mcp_servers=[server])
        print((await Runner.run(agent, "What is the weather in Oslo?")).final_output)


asyncio.run(main())
